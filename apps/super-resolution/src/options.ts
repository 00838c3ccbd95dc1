import {
  command,
  listOf,
  type OnnxFlag,
  oneOf,
  onnxFlag,
  type PretrainedFlags,
  pretrainedFlags,
  type RunFlags,
  runFlags,
  trackerDefaults,
  wholeNumber,
} from "@halfstep/trainer/cli";
import type { Command } from "commander";
import { type ShrinkKernel, shrinkKernels } from "./images.js";
import type { NetworkFlags } from "./saved-model.js";

/** How parameters are stored for prediction. */
const storages = ["float32", "float16", "bfloat16"] as const;

export type Stored = (typeof storages)[number];

interface Judged {
  /** Undefined: the photograph in the network's package. */
  readonly images?: string;
  readonly kernel: ShrinkKernel;
}

/** The options of `train`. */
export interface TrainCommand
  extends Omit<RunFlags, "epochs" | "accumulate" | "dumpPlan">,
    PretrainedFlags,
    Judged {
  readonly command: "train";
  readonly maxSteps: number;
  readonly crop: number;
  readonly evalEvery: number;
}

type Place = Pick<RunFlags, "adapter" | "device">;

/** The options of `evaluate`. */
export interface EvaluateCommand extends Place, Judged, NetworkFlags {
  readonly command: "evaluate";
  readonly precision: readonly Stored[];
  readonly tile: number;
  readonly json: boolean;
}

/** The options of `predict`. */
export interface PredictCommand extends Place, NetworkFlags {
  readonly command: "predict";
  readonly input: string;
  readonly output: string;
  readonly half: boolean;
  readonly tile: number;
}

/** The options of `export`. */
export interface ExportCommand extends NetworkFlags, OnnxFlag {
  readonly command: "export";
  readonly file: string;
}

export type SuperResolutionCommand =
  | TrainCommand
  | EvaluateCommand
  | PredictCommand
  | ExportCommand;

/** The command line's command. Throws a CommanderError for wrong flags, and for `--help` after it was shown. */
export function parseOptions(args: readonly string[]): SuperResolutionCommand {
  let chosen: SuperResolutionCommand | undefined;
  const main = command(
    "npm start -w super-resolution --",
    "Doubles images by a pretrained network, in float32 or in 16 bits, and trains it further.",
  );
  trainFlags(main.command("train").description("trains the network further")).action((flags) => {
    chosen = { command: "train", ...flags };
  });
  evaluateFlags(
    main
      .command("evaluate")
      .description(
        "compares precisions: with the golden image, with each other, in memory and time",
      ),
  ).action((flags) => {
    chosen = { command: "evaluate", ...flags };
  });
  predictFlags(main.command("predict <image> <result>").description("doubles an image")).action(
    (input, output, flags) => {
      chosen = { command: "predict", input, output, ...flags };
    },
  );
  onnxFlag(
    networkFlags(main.command("export <file>").description("writes a network as an ONNX file")),
  ).action((file, flags) => {
    chosen = { command: "export", file, ...flags };
  });
  main.parse(args, { from: "user" });
  // Without a command, commander shows the help and throws.
  return chosen as SuperResolutionCommand;
}

const trainFlags = (train: Command): Command =>
  runFlags(
    pretrainedFlags(judgedFlags(train), others)
      .option("--crop <n>", "side of what is cut out of images, in pixels", wholeNumber(8), 48)
      .option("--eval-every <n>", "steps between two evaluations", wholeNumber(1), 50),
    {
      precision: "float16",
      maxSteps: 300,
      batchSize: 8,
      lr: 1e-3,
      seed: 0,
      staticLossScale: undefined,
      initScale: 65536,
      saveEvery: 100,
      resume: undefined,
      out: "runs/super-resolution",
      adapter: undefined,
      device: undefined,
      json: false,
      tensorboard: false,
      ...trackerDefaults,
    },
    {
      maxSteps: { description: "steps to train" },
      batchSize: { description: "crops in a step" },
      lr: { description: "learning rate at the start of a cosine" },
    },
  );

const evaluateFlags = (evaluate: Command): Command =>
  runFlags(
    modelFlags(judgedFlags(evaluate)).option(
      "--precision <list>",
      "which of float32, float16, bfloat16, separated by commas",
      listOf(storages, "precision"),
      storages,
    ),
    { adapter: undefined, device: undefined, json: false },
    { json: { description: "print JSON instead of the table" } },
  );

const predictFlags = (predict: Command): Command =>
  runFlags(
    modelFlags(predict).option("--half", "store the network, and compute, in float16", false),
    {
      adapter: undefined,
      device: undefined,
    },
  );

const judgedFlags = (each: Command): Command =>
  each
    .option("--images <dir>", "images of one's own (default: the photograph of the package)")
    .option(
      "--kernel <name>",
      `how images are made smaller: ${shrinkKernels.join(", ")}`,
      oneOf(shrinkKernels),
      "nearest",
    );

/** What `--pretrained` names. */
const others =
  "another network: a Keras layers model, or weights of torch or safetensors for the package's";

const networkFlags = (each: Command): Command =>
  pretrainedFlags(
    each.option(
      "--model <dir>",
      "the --out folder of a training (default: the pretrained network)",
    ),
    others,
  );

const modelFlags = (each: Command): Command =>
  networkFlags(each).option(
    "--tile <n>",
    "side of the pieces that are computed at once",
    wholeNumber(32),
    256,
  );
