import type { AdapterSettings } from "@halfstep/trainer";
import {
  command,
  encodingName,
  fraction,
  jobDefaults,
  loraFlags,
  notNegative,
  type OnnxFlag,
  oneOf,
  onnxFlag,
  type PretrainedFlags,
  peftFlag,
  positiveNumber,
  precisionName,
  pretrainedFlags,
  type RunFlags,
  requireLoraBase,
  runFlags,
  trackerDefaults,
  UsageError,
  wholeNumber,
} from "@halfstep/trainer/cli";
import type { Command } from "commander";
import type { TokenizerName } from "./tokenizers/tokenizer.js";

/** The flags of `train`. */
export interface TrainCommand
  extends Omit<RunFlags, "epochs" | "dumpPlan">,
    PretrainedFlags,
    AdapterSettings {
  readonly command: "train";
  readonly maxSteps: number;
  /** Undefined: the State of the Union. */
  readonly text?: string;
  readonly encoding?: string;
  readonly arch: "gpt" | "lstm";
  readonly tokenizer: TokenizerName;
  /** Tokens of the byte pairs. */
  readonly vocabSize: number;
  readonly layers: number;
  readonly heads: number;
  readonly width: number;
  readonly context: number;
  readonly dropout: number;
  readonly bias: boolean;
  readonly minLr?: number;
  readonly warmUp: number;
  readonly weightDecay: number;
  readonly beta2: number;
  readonly clip: number;
  readonly ema?: number;
  readonly evalEvery: number;
  readonly evalCharacters: number;
  readonly patience?: number;
}

type Place = Pick<RunFlags, "adapter" | "device">;

/** The flags of `evaluate`. */
export interface EvaluateCommand extends Place, Pick<PretrainedFlags, "key"> {
  readonly command: "evaluate";
  readonly model: string;
  /** A folder of PEFT's adapters. */
  readonly peft?: string;
  readonly text?: string;
  readonly encoding?: string;
  readonly precision?: string;
  /** Of the held-out text, in pieces from all over it. */
  readonly characters: number;
  readonly batchSize: number;
  readonly stride?: number;
  /** Order of the n-grams to compare with; 0 for none. */
  readonly baseline: number;
  readonly json: boolean;
}

/** The flags of `predict`. */
export interface PredictCommand extends Place, Pick<PretrainedFlags, "key"> {
  readonly command: "predict";
  readonly model: string;
  /** A folder of PEFT's adapters. */
  readonly peft?: string;
  readonly prompt: string;
  readonly length: number;
  readonly temperature: number;
  readonly topK?: number;
  readonly topP?: number;
  readonly seed: number;
  readonly precision?: string;
  readonly half: boolean;
  readonly json: boolean;
}

/** The flags of `export`. */
export interface ExportCommand extends OnnxFlag, Pick<PretrainedFlags, "key"> {
  readonly command: "export";
  readonly directory: string;
  readonly model: string;
  /** Write the adapters of a training with --lora alone, for PEFT. */
  readonly adapters: boolean;
}

export type LanguageCommand = TrainCommand | EvaluateCommand | PredictCommand | ExportCommand;

/** The command line's command. Throws a CommanderError for wrong flags, and for `--help` after it was shown. */
export function parseOptions(args: readonly string[]): LanguageCommand {
  let chosen: LanguageCommand | undefined;
  const main = command(
    "npm start -w language-model --",
    "Trains a GPT or an LSTM on text by characters or byte pairs, judges it by bits per character, and lets it write.",
  );
  trainFlags(main.command("train").description("trains a model on a text")).action((flags) => {
    chosen = trainCommand(flags);
  });
  evaluateFlags(
    main.command("evaluate").description("bits per character on held-out text, beside n-grams"),
  ).action((flags) => {
    chosen = { command: "evaluate", ...flags, model: flags.pretrained ?? flags.model };
  });
  predictFlags(main.command("predict").description("goes on with a text")).action((flags) => {
    chosen = { command: "predict", ...flags, model: flags.pretrained ?? flags.model };
  });
  onnxFlag(
    modelFlag(
      main
        .command("export <directory>")
        .description("writes a model as a GPT-2 of Hugging Face: config, tokenizer, safetensors"),
    ),
  )
    .option("--adapters", "write the adapters of --lora alone, as PEFT has them", false)
    .action((directory, flags) => {
      chosen = { command: "export", directory, ...flags, model: flags.pretrained ?? flags.model };
    });
  main.parse(args, { from: "user" });
  // Without a command, commander shows the help and throws.
  return chosen as LanguageCommand;
}

/** @throws UsageError for flags that exclude each other */
function trainCommand(flags: Omit<TrainCommand, "command">): TrainCommand {
  const { width, heads, beta2 } = flags;
  if (flags.arch === "lstm" && flags.pretrained !== undefined)
    throw new UsageError("--pretrained is a GPT-2: leave it out with --arch lstm");
  if (flags.arch === "gpt" && width % heads !== 0)
    throw new UsageError(`--width ${width} is no multiple of --heads ${heads}`);
  requireLoraBase(flags);
  if (flags.lora !== undefined && flags.ema !== undefined)
    throw new UsageError("--ema averages whole models: leave it out with --lora");
  if (beta2 === 1) throw new UsageError("--beta2 is 1: it must be less");
  return { command: "train", ...flags };
}

const trainFlags = (train: Command): Command =>
  runFlags(
    pretrainedFlags(
      loraFlags(train, { layers: ["c_attn", "c_proj", "c_fc"], targets: ["c_attn"] }),
      "start from the folder of a GPT-2 as Hugging Face has it: its tokenizer, sizes and weights",
    )
      .option("--text <file>", "text to learn from (default: addresses on the State of the Union)")
      .option("--encoding <name>", "of --text: latin1, … (default: UTF-8)", encodingName)
      .option("--arch <name>", "gpt or lstm", oneOf(["gpt", "lstm"]), "gpt")
      .option("--tokenizer <name>", "char or bpe", oneOf(["char", "bpe"]), "char")
      .option("--vocab-size <n>", "tokens of --tokenizer bpe", wholeNumber(256), 1024)
      .option("--layers <n>", "blocks", wholeNumber(1), 4)
      .option("--heads <n>", "attention heads", wholeNumber(1), 4)
      .option("--width <n>", "features of a token", wholeNumber(1), 128)
      .option("--context <n>", "tokens that the model sees", wholeNumber(2), 64)
      .option("--dropout <p>", "dropout", fraction, 0)
      .option("--no-bias", "linear layers and norms without biases")
      .option(
        "--min-lr <rate>",
        "learning rate at the end (default: a tenth of --lr)",
        positiveNumber,
      )
      .option("--warm-up <n>", "steps in which the learning rate rises", wholeNumber(0), 100)
      .option("--weight-decay <x>", "of matrices and embeddings", notNegative, 0.1)
      .option("--beta2 <x>", "AdamW's second beta", fraction, 0.99)
      .option("--clip <norm>", "largest norm of the gradients", positiveNumber, 1)
      .option("--ema <decay>", "use an average of the parameters", fraction)
      .option("--eval-every <n>", "steps between two evaluations", wholeNumber(1), 200)
      .option(
        "--eval-characters <n>",
        "held-out characters in an evaluation while training",
        wholeNumber(100),
        20_000,
      )
      .option(
        "--patience <n>",
        "end after n evaluations without a better one (default: never)",
        wholeNumber(1),
      ),
    {
      precision: "float16",
      maxSteps: 1200,
      batchSize: 16,
      accumulate: 1,
      lr: 3e-3,
      seed: 0,
      staticLossScale: undefined,
      initScale: 65536,
      saveEvery: 500,
      resume: undefined,
      out: "runs/language-model",
      adapter: undefined,
      device: undefined,
      json: false,
      tensorboard: false,
      ...trackerDefaults,
      ...jobDefaults,
    },
    {
      maxSteps: { description: "steps to train" },
      batchSize: { description: "sequences in a batch" },
      lr: { description: "largest learning rate; a cosine follows the warm-up" },
    },
  );

const evaluateFlags = (evaluate: Command): Command =>
  runFlags(
    modelFlags(evaluate)
      .option("--text <file>", "text whose end is held out (default: State of the Union)")
      .option("--encoding <name>", "of --text: latin1, … (default: UTF-8)", encodingName)
      .option(
        "--characters <n>",
        "held-out characters, from all over them",
        wholeNumber(100),
        100_000,
      )
      .option("--stride <n>", "tokens between two contexts (default: half a one)", wholeNumber(1))
      .option("--baseline <n>", "compare with n-grams up to n; 0 for none", wholeNumber(0), 5),
    { batchSize: 32, adapter: undefined, device: undefined, json: false },
    {
      batchSize: { description: "sequences in a batch" },
      json: { description: "print JSON instead of the table" },
    },
  );

const predictFlags = (predict: Command): Command =>
  runFlags(
    modelFlags(predict)
      .option("--prompt <text>", "what the text begins with", "The ")
      .option("--length <n>", "tokens to add", wholeNumber(1), 300)
      .option("--temperature <x>", "0 takes the likeliest token", notNegative, 0.8)
      .option("--top-k <n>", "draw from the n likeliest tokens", wholeNumber(1))
      .option("--top-p <p>", "draw from the likeliest tokens of so much probability", fraction)
      .option("--half", "store the model in 16 bits", false),
    { seed: 0, adapter: undefined, device: undefined, json: false },
    { json: { description: "print JSON instead of the text alone" } },
  );

const modelFlag = (each: Command): Command =>
  pretrainedFlags(
    each.option(
      "--model <dir>",
      "the --out folder of a training, a checkpoint, or a GPT-2 as Hugging Face has it",
      "runs/language-model",
    ),
    "a GPT-2 as Hugging Face has it, in place of --model",
  );

const modelFlags = (each: Command): Command =>
  peftFlag(modelFlag(each)).option(
    "--precision <name>",
    "float32, float16, … (default: as the model was trained)",
    precisionName,
  );
