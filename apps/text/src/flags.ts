import {
  classFlags,
  encodingName,
  fraction,
  jobDefaults,
  loraFlags,
  notNegative,
  oneOf,
  onnxFlag,
  peftFlag,
  pretrainedFlags,
  runFlags,
  trackerDefaults,
  wholeNumber,
} from "@halfstep/trainer/cli";
import { type Command, InvalidArgumentError } from "commander";
import type { TrainCommand } from "./commands.js";
import { folds } from "./examples.js";
import { glueNames } from "./glue.js";
import { mailParts } from "./mails.js";
import { corpora, taskNames } from "./tasks.js";

/** The flags of `train` as commander has them: those of run_classifier that no program has but this keep their names. */
export interface TrainFlags
  extends Omit<TrainCommand, "command" | "task" | "precision" | "out" | "maxLength" | "warmup"> {
  readonly task?: TrainCommand["task"];
  readonly task_name?: string;
  readonly data_dir?: string;
  readonly bert_model?: string;
  readonly do_lower_case?: boolean;
  readonly do_train?: boolean;
  readonly do_eval?: boolean;
  readonly no_cuda?: boolean;
  readonly fp16?: boolean;
  readonly precision?: string;
  readonly loss_scale?: number;
  readonly warmup_proportion: number;
  readonly max_seq_length?: number;
  readonly out?: string;
}

/** Adds the flags of `train`. */
export const trainFlags = (train: Command): Command => {
  const described = classifierFlags(
    pretrainedFlags(
      train.option(
        "--task <name>",
        "spam, sentences, tags, or mlm: pre-training",
        oneOf(taskNames),
      ),
      "start from a BERT's folder: its vocabulary, size and parameters",
    ),
  )
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
    .option(
      "--multi-label",
      "a text of --data may have any number of labels: between commas, in lists of JSON, or in columns with 1",
    )
    .option(
      "--document-context",
      "tags in columns: a sentence is tagged with those around it in sight, up to -DOCSTART-",
    )
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
    .option("--focal <gamma>", "focal loss, from 1 on; 0 for none", focalGamma, 0)
    .option("--layer-decay <factor>", "of the learning rate, layer by layer down", fraction, 1)
    .option("--adversarial <epsilon>", "perturb the word embeddings so far: FGM", notNegative, 0);
  return runFlags(
    dataFlags(
      loraFlags(classFlags(described), {
        layers: ["query", "key", "value", "dense"],
        targets: ["query", "value"],
      }),
      "data of your own: label TAB text, .csv, .jsonl or .parquet; word/tag lines, CoNLL or lists; or lines of text",
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
      ...trackerDefaults,
      ...jobDefaults,
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
        also: "--output_dir",
        description:
          "folder for the model, metrics, checkpoints, summary and report (default: runs/text/TASK)",
      },
    },
  );
};

/** Adds the flags that pytorch-pretrained-BERT's run_classifier has, and other trainers have not. */
const classifierFlags = (train: Command): Command =>
  train
    .option(
      "--task_name <name>",
      `a task of GLUE in --data_dir, in place of --task: ${glueNames.join(", ")}`,
    )
    .option("--data_dir <dir>", "of --task_name: the folder with train.tsv and dev.tsv")
    .option(
      "--bert_model <dir>",
      "as --pretrained, with run_classifier's defaults: 3 epochs at 5e-5, batches of 32, 128 tokens",
    )
    .option(
      "--do_lower_case",
      "words of --bert_model or --pretrained are in lower case (default: as it says)",
    )
    .option("--do_train", "train (default: train and test)")
    .option("--do_eval", "test; alone, the model that is in --out")
    .option("--no_cuda", "compute on the CPU: --device cpu")
    .option("--fp16", "train in float16 mixed precision: --precision float16")
    .option(
      "--loss_scale <scale>",
      "0 for a dynamic loss scale, or a fixed one; without a precision it means --fp16",
      scaleOrZero,
    )
    .option("--warmup_proportion <part>", "of the steps, in which the rate rises", fraction, 0.1)
    .option(
      "--max_seq_length <n>",
      "tokens of a text; the rest is cut off, or tagged in further windows",
      wholeNumber(8),
    )
    .option("--eval_batch_size <n>", "accepted, and without effect", wholeNumber(1))
    .option("--local_rank <n>", "accepted, and without effect: launchers say it to each process")
    .option("--cache_dir <dir>", "accepted, and without effect: nothing is downloaded")
    .option("--server_ip <ip>", "accepted, and without effect, as --server_port")
    .option("--server_port <port>", "accepted, and without effect");

const dataFlags = (each: Command, description: string): Command =>
  each
    .option("--data <file>", description)
    .option("--encoding <name>", "of --data: latin1, shift_jis, … (default: UTF-8)", encodingName)
    .option("--text-column <column>", "of --data: which column has texts, by name or number")
    .option("--text-pair-column <column>", "of --data: which column has the second text of a pair")
    .option("--label-column <column>", "of --data: which column has labels")
    .option(
      "--label-names <names>",
      "names of labels that --data has as numbers from 0 on, with commas between them",
      (text: string) => text.split(",").map((name) => name.trim()),
    )
    .option(
      "--header",
      "the first line of --data names its columns (default: if it says text and label)",
    )
    .option("--no-header", "it does not")
    .option(
      "--token-column <column>",
      "of --data with a word a line (CoNLL): which column has words (default: the first); with lists (.jsonl, .parquet): its name",
      numberOrName,
    )
    .option("--tag-column <column>", "which column has tags (default: the last)", numberOrName);

/** A column's number from 1 on, or its name. */
const numberOrName = (text: string): number | string =>
  /^\d+$/.test(text) ? wholeNumber(1)(text) : text;

/** Adds the flags of `evaluate`. */
export const evaluateFlags = (evaluate: Command): Command =>
  dataFlags(useFlags(evaluate), "examples of your own, in place of the task's test data").option(
    "--limit <n>",
    "test on a sample of at most n examples",
    wholeNumber(1),
  );

/** Adds the flags of `predict`. */
export const predictFlags = (predict: Command): Command =>
  useFlags(predict)
    .option("--encoding <name>", "of standard input (default: UTF-8)", encodingName)
    .argument("[texts...]", "texts (default: the lines of standard input)");

/** Adds the flags of `export`. */
export const exportFlags = (each: Command): Command => onnxFlag(modelFlags(each));

const modelFlags = (each: Command): Command =>
  pretrainedFlags(
    peftFlag(each).option("--model <dir>", "the folder of a model: --out of train"),
    "the folder of a classifier, tagger or masked model of Hugging Face, in place of --model",
  );

const useFlags = (use: Command): Command =>
  runFlags(modelFlags(use).option("--half", "store and compute in float16", false), {
    adapter: undefined,
    device: undefined,
    json: false,
  });

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
