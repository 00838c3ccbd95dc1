import type { ApexLevel } from "@halfstep/autocast";
import {
  command,
  fraction,
  lossScale,
  oneOf,
  positiveNumber,
  precisionName,
  type RunFlags,
  runFlags,
  wholeNumber,
} from "@halfstep/trainer/cli";
import { type Command, InvalidArgumentError } from "commander";
import { type Architecture, architectures } from "./model.js";
import type { PrecisionFlags } from "./precision.js";

/** What training is asked for: the flags of apex's ImageNet trainers, and of this one. */
export interface TrainCommand
  extends PrecisionFlags,
    Omit<RunFlags, "precision" | "staticLossScale" | "initScale" | "dumpPlan"> {
  readonly command: "train";
  /** Undefined: the MNIST that comes with the app. */
  readonly directory: string | undefined;
  readonly arch: Architecture;
  readonly width?: number;
  readonly stem?: "imagenet" | "cifar";
  readonly momentum: number;
  readonly weightDecay: number;
  readonly normDecay: boolean;
  readonly warmUp: number;
  readonly milestones: readonly number[];
  readonly labelSmoothing: number;
  readonly limit?: number;
  readonly imageSize?: number;
  readonly cropScale: number;
  readonly flip?: boolean;
  readonly augment: boolean;
  readonly workers: number;
  readonly evalEvery: number;
  /** A safetensors file with torch's names. */
  readonly pretrained?: string;
  readonly evaluate: boolean;
  readonly deterministic: boolean;
  /** Profile: end ten steps after this one. */
  readonly prof?: number;
}

/** What `predict` is asked for. */
export interface PredictCommand extends Pick<RunFlags, "adapter" | "device" | "json"> {
  readonly command: "predict";
  readonly files: readonly string[];
  readonly model: string;
  readonly batchSize: number;
  readonly half: boolean;
}

/** What `export-folder` is asked for. */
export interface ExportCommand {
  readonly command: "export-folder";
  /** Undefined: the MNIST that comes with the app. */
  readonly from?: string;
  readonly to: string;
  readonly train?: number;
  readonly test?: number;
}

export type ImagesCommand = TrainCommand | PredictCommand | ExportCommand;

/** Defaults that depend on whether there is a folder: apex's, or those of a demonstration that ends soon. */
type Standard = Pick<
  TrainCommand,
  "arch" | "width" | "epochs" | "batchSize" | "lr" | "warmUp" | "milestones" | "limit"
>;
const apex: Standard = {
  ...{ arch: "resnet18", epochs: 90, batchSize: 256, lr: 0.1 },
  ...{ warmUp: 5, milestones: [30, 60, 80] },
};
export const demonstration: Standard = {
  ...{ arch: "resnet20", width: 8, epochs: 3, batchSize: 64, lr: 0.4 },
  ...{ warmUp: 1, milestones: [2], limit: 4000 },
};

/** The command line's command. Throws a CommanderError for wrong flags, and for `--help` after it was shown. */
export function parseOptions(args: readonly string[]): ImagesCommand {
  let chosen: ImagesCommand | undefined;
  const main = command(
    "npm start -w images --",
    "Trains ResNets on images, with the command line of apex's ImageNet trainer: `DIR --arch resnet18 --fp16 …`.",
  );
  const chooseTraining = (flags: Partial<TrainCommand>, directory: string | undefined): void => {
    const standard = directory === undefined ? demonstration : apex;
    const given = Object.entries(flags).filter(([, value]) => value !== undefined);
    chosen = {
      ...{ command: "train", directory },
      ...standard,
      ...Object.fromEntries(given),
    } as TrainCommand;
  };
  const train = trainFlags(
    main
      .command("train [dir]", { isDefault: true })
      .description(
        "trains, and tests after every epoch; the command that is meant if none is named",
      ),
  ).action((directory: string | undefined, flags) => chooseTraining(flags, directory));
  trainFlags(
    main.command("evaluate [dir]").description("tests a trained network: train --evaluate"),
  ).action((directory: string | undefined, flags) =>
    chooseTraining({ ...flags, evaluate: true }, directory),
  );
  predictFlags(main.command("predict <image...>").description("says what image files show")).action(
    (files: readonly string[], flags) => {
      chosen = { command: "predict", files, ...flags };
    },
  );
  main
    .command("export-folder <dir>")
    .description(
      "writes MNIST, or CIFAR-10 or IDX files, as dir/train/CLASS/*.png and dir/val/CLASS/*.png",
    )
    .option("--from <dir>", "the files to read (default: the MNIST that comes with the app)")
    .option("--train <n>", "training images at most", wholeNumber(1))
    .option("--test <n>", "test images at most", wholeNumber(1))
    .action((to: string, flags) => {
      chosen = { command: "export-folder", to, ...flags };
    });
  main.addHelpText("after", () => `\n${train.helpInformation()}`);
  main.parse(args, { from: "user" });
  return chosen as unknown as ImagesCommand;
}

const trainFlags = (train: Command): Command =>
  runFlags(
    train
      .option(
        "-a, --arch <name>",
        `${architectures.join(", ")} (default: resnet18)`,
        oneOf(architectures),
      )
      .option(
        "--width <n>",
        "channels of the first stage (default: 64, resnet20: 16)",
        wholeNumber(1),
      )
      .option(
        "--stem <name>",
        "imagenet or cifar (default: by the image size)",
        oneOf(["imagenet", "cifar"]),
      )
      .option("-b, --batch-size <n>", "images in a batch (default: 256)", wholeNumber(2))
      .option(
        "--learning-rate, --lr <rate>",
        "for 256 images in a step; scaled by their number (default: 0.1)",
        positiveNumber,
      )
      .option("--momentum <x>", "of SGD", fraction, 0.9)
      .option("--wd, --weight-decay <x>", "weight decay", notNegative, 1e-4)
      .option("--no-norm-decay", "no weight decay of batch norm and biases")
      .option(
        "--warm-up <n>",
        "epochs in which the learning rate rises (default: 5)",
        wholeNumber(0),
      )
      .option(
        "--milestones <list>",
        "epochs at which it becomes a tenth (default: 30,60,80)",
        epochList,
      )
      .option(
        "--label-smoothing <x>",
        "share of the target that is spread over all classes",
        fraction,
        0,
      )
      .option("--fp16", "float16 with float32 masters and batch norm: FP16_Optimizer")
      .option(
        "--static-loss-scale <scale>",
        "--fp16: a fixed loss scale (default: 1)",
        lossScale("static"),
      )
      .option(
        "--dynamic-loss-scale",
        "--fp16: a dynamic loss scale; supersedes --static-loss-scale",
      )
      .option(
        "--opt-level <level>",
        "O0, O1, O2 or O3 of apex.amp",
        oneOf<ApexLevel>(["O0", "O1", "O2", "O3"]),
      )
      .option(
        "--keep-batchnorm-fp32 <bool>",
        "--opt-level: True or False",
        oneOf(["True", "False"]),
      )
      .option("--loss-scale <scale>", '--opt-level: a number, or "dynamic"')
      .option(
        "--precision <name>",
        "another recipe: float16, bfloat16, mixed_float16, …",
        precisionName,
      )
      .option(
        "--init-scale <scale>",
        "where a dynamic loss scale starts (default: as apex)",
        lossScale(),
      )
      .option("--limit <n>", "train on the first n images and test on at most n", wholeNumber(2))
      .option(
        "--image-size <n>",
        "pixels of a side that image files are brought to (default: 224)",
        wholeNumber(8),
      )
      .option(
        "--crop-scale <x>",
        "smallest part of an image file that training sees",
        fraction,
        0.08,
      )
      .option("--flip", "mirror half of the images (default: image files and CIFAR-10)")
      .option("--no-flip", "mirror none")
      .option("--no-augment", "train on the images as they are")
      .option("-j, --workers <n>", "images that are decoded at a time", wholeNumber(1), 4)
      .option("--eval-every <n>", "epochs between two evaluations", wholeNumber(1), 1)
      .option("--pretrained <file>", "start from a safetensors file with torchvision's names")
      .option(
        "-e, --evaluate",
        "test the network of --resume, or the best of --out, and end",
        false,
      )
      .option(
        "--deterministic",
        "the same seed gives the same bits (it always does: this says so)",
        false,
      )
      .option(
        "--prof <n>",
        "end ten steps after step n, and show where the time went",
        wholeNumber(0),
      ),
    {
      ...{ epochs: undefined, maxSteps: undefined, seed: 0, accumulate: 1, saveEvery: 500 },
      ...{
        resume: undefined,
        out: "runs/images",
        adapter: undefined,
        device: undefined,
        json: false,
      },
    },
    { epochs: { description: "passes over the training images (default: 90)" } },
  );

const predictFlags = (predict: Command): Command =>
  runFlags(
    predict
      .option("--model <dir>", "the --out folder of a training, or a checkpoint", "runs/images")
      .option("--half", "compute in float16", false),
    { batchSize: 32, adapter: undefined, device: undefined, json: false },
    {
      batchSize: { description: "images in a batch" },
      json: { description: "print JSON instead of lines" },
    },
  );

function epochList(text: string): readonly number[] {
  const epochs = text === "" ? [] : text.split(",").map(wholeNumber(1));
  if (epochs.some((epoch, i) => i > 0 && epoch <= (epochs[i - 1] as number)))
    throw new InvalidArgumentError("epochs must rise.");
  return epochs;
}

function notNegative(text: string): number {
  const value = Number(text);
  if (!(value >= 0 && value < Number.POSITIVE_INFINITY) || text.trim() === "")
    throw new InvalidArgumentError("it must be a number from 0 on.");
  return value;
}
