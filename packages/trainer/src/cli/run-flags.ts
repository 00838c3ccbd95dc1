import type { Wire } from "@halfstep/distributed";
import { type Command, Option } from "commander";
import type { ExchangeMode } from "../job-exchange.js";
import { folderName, lossScale, positiveNumber, precisionName, wholeNumber } from "./values.js";

/** The standard flags of a training program. */
export interface RunFlags {
  /** The name of a recipe: "float32", "float16", "bfloat16", "O0" to "O3", or any other that `recipeFor` takes. */
  readonly precision: string;
  readonly epochs: number;
  /** Ends training after so many steps. */
  readonly maxSteps?: number;
  readonly batchSize: number;
  readonly lr: number;
  readonly seed: number;
  /** Batches that make one step. */
  readonly accumulate: number;
  /** A fixed loss scale, instead of that of the precision. */
  readonly staticLossScale?: number;
  /** The initial value of a dynamic loss scale. */
  readonly initScale: number;
  /** Steps between two checkpoints. */
  readonly saveEvery: number;
  /** "auto", or the folder of a checkpoint. Undefined: from the beginning. */
  readonly resume?: string;
  readonly out: string;
  readonly adapter?: string;
  /** Undefined: the GPU, or the CPU where there is none. */
  readonly device?: "gpu" | "cpu";
  /** Print `summary.json` instead of the table. */
  readonly json: boolean;
  /** Print the plan of the first step. */
  readonly dumpPlan: boolean;
  /** Write event files of TensorBoard below `out`. */
  readonly tensorboard: boolean;
  /** Log to Weights & Biases. */
  readonly wandb: boolean;
  /** Log to an MLflow server. */
  readonly mlflow: boolean;
  /** Export metrics by OpenTelemetry. */
  readonly otel: boolean;
  /** Train as one rank of a job of several processes. */
  readonly distributed: boolean;
  /** In a job, how its ranks work together. */
  readonly exchange: ExchangeMode;
  /** In a job, the format in which numbers travel. */
  readonly wire: Wire;
  /** In a job that exchanges by DiLoCo, steps of each rank between two exchanges. */
  readonly innerSteps: number;
  /** In a job that averages gradients, columns of the factors in place of the gradients of matrices. */
  readonly powerSgd?: number;
  /** In a job, seconds within which other ranks must answer. */
  readonly deadline: number;
}

/** The standard values of the flags that log to services. */
export const trackerDefaults: Pick<RunFlags, "wandb" | "mlflow" | "otel"> = {
  wandb: false,
  mlflow: false,
  otel: false,
};

/** The standard values of the flags of a job of several processes. */
export const jobDefaults: Pick<
  RunFlags,
  "distributed" | "exchange" | "wire" | "innerSteps" | "deadline"
> & { readonly powerSgd: undefined } = {
  distributed: false,
  exchange: "allReduce",
  wire: "auto",
  innerSteps: 20,
  powerSgd: undefined,
  deadline: 600,
};

/** Changes of a program to a standard flag. */
export interface FlagDetails {
  /** Another spelling: "-b" of `--batch-size`, "--learning-rate" of `--lr`. */
  readonly also?: `-${string}`;
  readonly description?: string;
  readonly parse?: (text: string) => unknown;
}

/** A standard flag, with details that a program may change. */
interface Flag extends FlagDetails {
  readonly flags: string;
  readonly description: string;
  readonly choices?: readonly string[];
  readonly conflicts?: keyof RunFlags;
}

const standard: Readonly<Record<keyof RunFlags, Flag>> = {
  precision: {
    flags: "--precision <name>",
    description: "float32, float16, bfloat16, O0, O1, O2, O3, or another recipe",
    parse: precisionName,
  },
  epochs: {
    flags: "--epochs <n>",
    description: "passes over the training data",
    parse: wholeNumber(1),
  },
  maxSteps: {
    flags: "--max-steps <n>",
    description: "end training after n steps",
    parse: wholeNumber(1),
  },
  batchSize: {
    flags: "--batch-size <n>",
    description: "samples in a batch",
    parse: wholeNumber(1),
  },
  lr: { flags: "--lr <rate>", description: "largest learning rate", parse: positiveNumber },
  seed: {
    flags: "--seed <n>",
    description: "seed of all that is random",
    parse: wholeNumber(0),
  },
  accumulate: {
    flags: "--accumulate <n>",
    description: "batches that make one step",
    parse: wholeNumber(1),
  },
  staticLossScale: {
    flags: "--static-loss-scale <scale>",
    description: "float16: a fixed loss scale instead of a dynamic one",
    parse: lossScale("static"),
    conflicts: "initScale",
  },
  initScale: {
    flags: "--init-scale <scale>",
    description: "float16: where the dynamic loss scale starts",
    parse: lossScale(),
  },
  saveEvery: {
    flags: "--save-every <n>",
    description: "steps between two checkpoints",
    parse: wholeNumber(1),
  },
  resume: {
    flags: "--resume <from>",
    description:
      'go on from a checkpoint: its folder, or "auto" for the newest in --out that is whole; more --epochs or --max-steps than before train longer',
  },
  out: {
    flags: "--out <dir>",
    description: "folder for metrics, checkpoints, summary and report",
    parse: folderName,
  },
  adapter: {
    flags: "--adapter <name|index>",
    description: "which GPU, by part of its name or by number (or HALFSTEP_ADAPTER)",
  },
  device: {
    flags: "--device <kind>",
    description: "where to compute (default: the GPU if there is one)",
    choices: ["gpu", "cpu"],
  },
  json: { flags: "--json", description: "print summary.json instead of the table" },
  dumpPlan: { flags: "--dump-plan", description: "print the plan of the first step" },
  tensorboard: {
    flags: "--tensorboard",
    description: "write event files for TensorBoard, in the folder tensorboard of the run",
  },
  wandb: {
    flags: "--wandb",
    description: "log to Weights & Biases by @wandb/sdk (WANDB_API_KEY, WANDB_PROJECT, …)",
  },
  mlflow: {
    flags: "--mlflow",
    description: "log to an MLflow server (MLFLOW_TRACKING_URI, MLFLOW_EXPERIMENT_NAME)",
  },
  otel: {
    flags: "--otel",
    description: "export metrics by OpenTelemetry's SDK over OTLP (OTEL_EXPORTER_OTLP_ENDPOINT, …)",
  },
  distributed: {
    flags: "--distributed",
    description: "train as one rank of a job (default: where mpirun, srun or WORLD_SIZE says so)",
  },
  exchange: {
    flags: "--exchange <mode>",
    description:
      "in a job: average gradients in every step (zero1: each rank keeps a part of the optimizer's state; auto: where adapters differ), or parameters now and then",
    choices: ["allReduce", "zero1", "auto", "diloco"],
  },
  wire: {
    flags: "--wire <format>",
    description: "in a job: how numbers travel; auto is float16 between hosts",
    choices: ["auto", "float32", "float16", "bfloat16"],
  },
  innerSteps: {
    flags: "--inner-steps <n>",
    description: "--exchange diloco: steps of each rank between two exchanges",
    parse: wholeNumber(1),
  },
  powerSgd: {
    flags: "--power-sgd <rank>",
    description:
      "--exchange allReduce: gradients of matrices travel as factors of so many columns; pays on slow links (default: whole)",
    parse: wholeNumber(1),
  },
  deadline: {
    flags: "--deadline <seconds>",
    description: "in a job: a process ends where others do not answer for so long",
    parse: positiveNumber,
  },
};

/**
 * Adds the standard flags of training to a command: those that `defaults` names, with its values as defaults. `undefined`
 * adds a flag without a default.
 *
 * @example
 * runFlags(command("npm start -w images --", "Trains."), { epochs: 90, lr: 0.1, resume: undefined, json: false }, {
 *   batchSize: { also: "-b", description: "images in a batch", parse: wholeNumber(2) },
 * }).opts<Pick<RunFlags, "epochs" | "lr" | "resume" | "json">>();
 */
export function runFlags(
  command: Command,
  defaults: { readonly [Name in keyof RunFlags]?: RunFlags[Name] | undefined },
  details: { readonly [Name in keyof RunFlags]?: FlagDetails } = {},
): Command {
  for (const [key, standardFlag] of Object.entries(standard)) {
    const name = key as keyof RunFlags;
    if (!(name in defaults)) continue;
    const { flags, also, description, parse, choices, conflicts } = {
      ...standardFlag,
      ...details[name],
    };
    const option = new Option(also === undefined ? flags : `${also}, ${flags}`, description);
    if (choices) option.choices([...choices]);
    else if (parse) option.argParser(parse);
    if (conflicts && conflicts in defaults) option.conflicts(conflicts);
    if (defaults[name] !== undefined) option.default(defaults[name]);
    command.addOption(option);
  }
  return command;
}
