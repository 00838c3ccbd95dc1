import {
  command,
  encodingName,
  fraction,
  notNegative,
  oneOf,
  type RunFlags,
  runFlags,
  UsageError,
  wholeNumber,
} from "@halfstep/trainer/cli";
import { type Command, InvalidArgumentError, Option } from "commander";
import { folds } from "./examples.js";
import { type MailPart, mailParts } from "./mails.js";
import type { OwnData } from "./own-data.js";
import { type Corpus, corpora, type TaskName, taskNames } from "./tasks.js";

/** The flags of reading a custom file. */
type DataFlags = Partial<Omit<OwnData, "labels">>;

/** The flags of `train`. Undefined ones have the defaults of the task: see `task-defaults.ts`. */
export interface TrainCommand
  extends DataFlags,
    Pick<RunFlags, "maxSteps" | "seed" | "accumulate" | "saveEvery" | "resume" | "tensorboard">,
    Pick<RunFlags, "adapter" | "device" | "json"> {
  readonly command: "train";
  readonly task: TaskName;
  readonly isTraining: boolean;
  readonly isEvaluating: boolean;
  readonly precision: string;
  /** Initial value of a dynamic loss scale. */
  readonly initScale?: number | undefined;
  readonly staticLossScale?: number | undefined;
  readonly epochs?: number | undefined;
  readonly batchSize?: number | undefined;
  readonly lr?: number | undefined;
  readonly maxLength?: number | undefined;
  readonly warmup: number;
  readonly limit?: number;
  readonly mailPart: MailPart;
  readonly words: number;
  readonly corpus: Corpus;
  readonly fold: number | "all";
  readonly init?: string;
  readonly hiddenSize?: number;
  readonly layers?: number;
  readonly heads?: number;
  readonly dropout?: number;
  readonly leastCount?: number;
  readonly leastFeature?: number;
  readonly bag?: boolean;
  readonly crf: boolean;
  readonly wordFeatures: boolean;
  readonly labelSmoothing: number;
  readonly focal: number;
  readonly layerDecay: number;
  readonly adversarial: number;
  readonly out: string;
}

interface Use extends Pick<RunFlags, "adapter" | "device" | "json"> {
  readonly model: string;
  readonly half: boolean;
}

export interface EvaluateCommand extends Use, DataFlags {
  readonly command: "evaluate";
  readonly limit?: number;
}

export interface PredictCommand extends Use {
  readonly command: "predict";
  /** Of standard input. Default: UTF-8, or UTF-16 with its mark. */
  readonly encoding?: string;
  /** Empty: the lines of standard input. */
  readonly texts: readonly string[];
}

/** The command line's command. Throws a CommanderError for wrong flags, and for `--help` after it was shown. */
export function parseOptions(
  args: readonly string[],
): TrainCommand | EvaluateCommand | PredictCommand {
  let chosen: TrainCommand | EvaluateCommand | PredictCommand | undefined;
  const main = command(
    "npm start -w text --",
    "BERT, small: learns to classify texts, to tag words, or to tell hidden words, in mixed precision.",
  );
  trainFlags(main.command("train").description("trains a model of a task, and tests it")).action(
    (flags) => {
      chosen = trainCommand(flags);
    },
  );
  dataFlags(
    useFlags(main.command("evaluate").description("tests a trained model")),
    "examples of your own, in place of the task's test data",
  )
    .option("--limit <n>", "test on a sample of at most n examples", wholeNumber(1))
    .action((flags) => {
      chosen = { command: "evaluate", ...flags, model: modelOf(flags) };
    });
  useFlags(main.command("predict").description("classes of texts, tags of words, or hidden words"))
    .option("--encoding <name>", "of standard input (default: UTF-8)", encodingName)
    .argument("[texts...]", "texts (default: the lines of standard input)")
    .action((texts, flags) => {
      chosen = { command: "predict", texts, ...flags, model: modelOf(flags) };
    });
  main.parse(args, { from: "user" });
  // Without a command, commander shows the help and throws.
  return chosen as NonNullable<typeof chosen>;
}

/** Flags as commander has them: those of run_classifier that no program has but this keep their names. */
interface TrainFlags extends Omit<TrainCommand, "command" | "precision" | "out"> {
  readonly do_train?: boolean;
  readonly do_eval?: boolean;
  readonly fp16?: boolean;
  readonly precision?: string;
  readonly loss_scale: number;
  readonly warmup_proportion: number;
  readonly max_seq_length?: number;
  readonly out?: string;
}

const trainFlags = (train: Command): Command => {
  train
    .addOption(
      new Option("--task <name>", "spam, sentences, tags, or mlm: pre-training")
        .argParser(oneOf(taskNames))
        .makeOptionMandatory(),
    )
    // Those of pytorch-pretrained-BERT's run_classifier.
    .option("--do_train", "train (default: train and test)")
    .option("--do_eval", "test; alone, the model that is in --out")
    .option("--fp16", "train in float16 mixed precision: --precision float16")
    .option(
      "--loss_scale <scale>",
      "with --fp16: 0 for a dynamic loss scale, or a fixed one",
      scaleOrZero,
      0,
    )
    .option("--warmup_proportion <part>", "of the steps, in which the rate rises", fraction, 0.1)
    .option("--max_seq_length <n>", "tokens of a text, the rest is cut off", wholeNumber(8))
    .option("--limit <n>", "train on a sample of n examples, and test on at most n", wholeNumber(2))
    .option("--mail-part <part>", mailParts.join(", "), oneOf(mailParts), "body")
    .option("--words <n>", "words of a mail that are read", wholeNumber(1), 60)
    .option("--corpus <name>", `of mlm: ${corpora.join(", ")}`, oneOf(corpora), "brown")
    .option(
      "--fold <k>",
      `which fifth is tested, 0 to ${folds - 1}, or all: cross-validation`,
      foldOrAll,
      0,
    )
    .option("--test-data <file>", "test on this file, and train on all of --data")
    .option("--init <dir>", "go on from a BERT's folder: its vocabulary, size and parameters")
    .option("--hidden-size <n>", "features of a token", wholeNumber(1))
    .option("--layers <n>", "transformer layers", wholeNumber(1))
    .option("--heads <n>", "attention heads", wholeNumber(1))
    .option("--dropout <p>", "dropout", fraction)
    .option("--least-count <n>", "how often a token occurs that gets a place", wholeNumber(1))
    .option("--bag", "classes: add the scores of a bag of words, which begins as naive Bayes")
    .option("--no-bag", "classes: BERT alone")
    .option("--no-crf", "tags: score each tag alone")
    .option("--no-word-features", "tags: look at tokens alone, not at how words are spelt")
    .option("--least-feature <n>", "tags: how often a word's feature occurs", wholeNumber(1))
    .option("--label-smoothing <part>", "of the target, spread over all classes", fraction, 0)
    .option("--focal <gamma>", "focal loss, from 1 on; 0 for none", focalGamma, 0)
    .option("--layer-decay <factor>", "of the learning rate, layer by layer down", fraction, 1)
    .option("--adversarial <epsilon>", "perturb the word embeddings so far: FGM", notNegative, 0);
  return runFlags(
    dataFlags(
      train,
      "data of your own: label TAB text, .csv or .jsonl; word/tag lines; or lines of text",
    ),
    {
      precision: undefined,
      epochs: undefined,
      maxSteps: undefined,
      batchSize: undefined,
      lr: undefined,
      accumulate: 1,
      seed: 0,
      initScale: undefined,
      saveEvery: 200,
      resume: undefined,
      out: undefined,
      adapter: undefined,
      device: undefined,
      json: false,
      tensorboard: false,
    },
    // By run_classifier's names, too.
    {
      epochs: { also: "--num_train_epochs" },
      batchSize: { also: "--train_batch_size", description: "texts in a batch" },
      lr: { also: "--learning_rate" },
      accumulate: { also: "--gradient_accumulation_steps" },
      precision: {
        description: "float32 (default), float16, bfloat16, O0, O1, O2, O3, or another recipe",
      },
      out: {
        description:
          "folder for the model, metrics, checkpoints, summary and report (default: runs/text/TASK)",
      },
    },
  );
};

const dataFlags = (each: Command, description: string): Command =>
  each
    .option("--data <file>", description)
    .option("--encoding <name>", "of --data: latin1, shift_jis, … (default: UTF-8)", encodingName)
    .option("--text-column <column>", "of --data: which column has texts, by name or number")
    .option("--label-column <column>", "of --data: which column has labels")
    .option(
      "--header",
      "the first line of --data names its columns (default: if it says text and label)",
    )
    .option("--no-header", "it does not")
    .option(
      "--token-column <n>",
      "of --data with a word a line (CoNLL): which column has words (default: the first)",
      wholeNumber(1),
    )
    .option("--tag-column <n>", "which column has tags (default: the last)", wholeNumber(1));

const useFlags = (use: Command): Command =>
  runFlags(
    use
      .option("--model <dir>", "the folder of a model: --out of train")
      .option(
        "--pretrained <dir>",
        "the folder of a classifier, tagger or masked model of Hugging Face, in place of --model",
      )
      .option("--half", "store and compute in float16", false),
    { adapter: undefined, device: undefined, json: false },
  );

/** @throws UsageError where none or both are given */
function modelOf({ model, pretrained }: { model?: string; pretrained?: string }): string {
  const given = model ?? pretrained;
  if (given === undefined || (model ?? pretrained) !== (pretrained ?? model))
    throw new UsageError("name one model: --model for one of train, --pretrained for others");
  return given;
}

function trainCommand(flags: TrainFlags): TrainCommand {
  const { do_train, do_eval, fp16, loss_scale, max_seq_length, warmup_proportion, ...same } = flags;
  const { task, labelSmoothing, focal } = same;
  if (fp16 && flags.precision !== undefined)
    throw new UsageError("--fp16 is --precision float16: give one of the two");
  if (loss_scale > 0 && flags.initScale !== undefined)
    throw new UsageError("--loss_scale is fixed, and --init-scale where a dynamic one starts");
  if (labelSmoothing > 0 && focal > 0)
    throw new UsageError("--label-smoothing and --focal are two losses: give one of them");
  if (task === "tags" && flags.crf && (labelSmoothing > 0 || focal > 0))
    throw new UsageError(
      "--label-smoothing and --focal are for tags that stand alone: add --no-crf",
    );
  if (task === "mlm" && (labelSmoothing > 0 || focal > 0))
    throw new UsageError("--label-smoothing and --focal are for classes and tags, not for mlm");
  const isBoth = !do_train && !do_eval;
  return {
    ...same,
    command: "train",
    isTraining: isBoth || do_train === true,
    isEvaluating: isBoth || do_eval === true,
    precision: fp16 ? "float16" : (flags.precision ?? "float32"),
    ...(loss_scale > 0 && { staticLossScale: loss_scale }),
    maxLength: max_seq_length,
    warmup: warmup_proportion,
    out: flags.out ?? `runs/text/${task}`,
  };
}

function scaleOrZero(text: string): number {
  const scale = notNegative(text);
  if (scale > 0 && !Number.isInteger(Math.log2(scale)))
    throw new InvalidArgumentError("it must be 0, or a power of 2.");
  return scale;
}

function focalGamma(text: string): number {
  const gamma = notNegative(text);
  if (gamma > 0 && gamma < 1) throw new InvalidArgumentError("it must be 0, or from 1 on.");
  return gamma;
}

function foldOrAll(text: string): number | "all" {
  if (text === "all") return "all";
  const fold = wholeNumber(0)(text);
  if (fold >= folds) throw new InvalidArgumentError(`it must be 0 to ${folds - 1}, or all.`);
  return fold;
}
