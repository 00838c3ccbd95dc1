import {
  type ClassFlags,
  command,
  type OnnxFlag,
  type PretrainedFlags,
  type RunFlags,
  UsageError,
  wholeNumber,
} from "@halfstep/trainer/cli";
import type { Zoom } from "./data.js";
import { exportFlags, predictFlags, trainFlags } from "./flags.js";
import type { LabelFlags } from "./label-file.js";
import type { Architecture } from "./model.js";
import type { PrecisionFlags } from "./precision.js";

/** The flags of how a network sees images. */
interface ViewFlags {
  readonly imageSize?: number;
  readonly zoom?: Zoom;
  readonly mean?: readonly number[];
  readonly std?: readonly number[];
}

/** The flags of training: those of apex's ImageNet trainers, and of this one. */
export interface TrainCommand
  extends PrecisionFlags,
    ViewFlags,
    ClassFlags,
    LabelFlags,
    PretrainedFlags,
    Omit<RunFlags, "precision" | "staticLossScale" | "initScale"> {
  readonly command: "train";
  /** Undefined: the MNIST that comes with the app. */
  readonly directory: string | undefined;
  /** Undefined: that of `pretrained`. */
  readonly arch?: Architecture;
  readonly width?: number;
  readonly stem?: "imagenet" | "cifar";
  readonly shortcut?: "projection" | "padding";
  readonly momentum: number;
  readonly weightDecay: number;
  readonly normDecay: boolean;
  readonly warmUp: number;
  readonly milestones: readonly number[];
  /** Whether batch norms normalise by the batch of all processes. */
  readonly syncBatchNorm: boolean;
  readonly limit?: number;
  readonly cropScale: number;
  readonly flip?: boolean;
  readonly augment: boolean;
  readonly workers: number;
  readonly evalEvery: number;
  readonly evaluate: boolean;
  readonly deterministic: boolean;
  /** Whether an image has any number of the labels of `labels`. */
  readonly multiLabel?: boolean;
  /** Profile: end ten steps after this one. */
  readonly prof?: number;
}

/** The flags of `predict`. */
export interface PredictCommand
  extends ViewFlags,
    PretrainedFlags,
    Pick<RunFlags, "adapter" | "device" | "json"> {
  readonly command: "predict";
  /** Names of classes with commas between them, or a file with one a line. */
  readonly classes?: string;
  readonly files: readonly string[];
  readonly model: string;
  readonly batchSize: number;
  readonly half: boolean;
}

/** The flags of `export-folder`. */
interface ExportCommand {
  readonly command: "export-folder";
  /** Undefined: the MNIST that comes with the app. */
  readonly from?: string;
  readonly to: string;
  readonly train?: number;
  readonly test?: number;
}

/** The flags of `export`. */
export interface ExportWeightsCommand extends OnnxFlag, Pick<RunFlags, "adapter" | "device"> {
  readonly command: "export";
  readonly file: string;
  readonly model: string;
}

export type ImagesCommand = TrainCommand | PredictCommand | ExportWeightsCommand | ExportCommand;

/** Defaults that depend on whether there is a folder: apex's, or those of a demonstration that ends soon. */
type Standard = Pick<
  TrainCommand,
  "arch" | "stem" | "epochs" | "batchSize" | "lr" | "warmUp" | "milestones" | "limit"
>;
const apex: Standard = {
  ...{ arch: "resnet18", epochs: 90, batchSize: 256, lr: 0.1 },
  ...{ warmUp: 5, milestones: [30, 60, 80] },
};
export const demonstration: Standard = {
  ...{ arch: "resnet20", stem: "imagenet", epochs: 3, batchSize: 64, lr: 0.4 },
  ...{ warmUp: 1, milestones: [2], limit: 4000 },
};

/** Flags that are other names of options. */
interface ShortFlags {
  readonly sync_bn?: boolean;
  readonly bf16?: boolean;
  readonly startEpoch?: number;
}

/** As argparse does, which takes the beginnings of names: apex's README has `--b 224`. */
const asSpelled = (flag: string): string => (flag === "--b" ? "--batch-size" : flag);

/** @throws UsageError for an epoch to start at that no checkpoint decides */
function requireFirstEpoch(startEpoch: number | undefined, resume: string | undefined): void {
  if (startEpoch !== undefined && startEpoch > 0 && resume === undefined)
    throw new UsageError(
      `--start-epoch ${startEpoch}: training begins at epoch 0, or goes on where --resume stopped: leave it out`,
    );
}

/** The precision of `--bf16`. @throws UsageError where another flag chooses a precision, too */
function bfloat16Alone({ fp16, optLevel, precision }: PrecisionFlags): string {
  const others = { "--fp16": fp16, "--opt-level": optLevel, "--precision": precision };
  const other = Object.entries(others).find(([, value]) => value !== undefined);
  if (other)
    throw new UsageError(`--bf16 and ${other[0]} both choose a precision: give one of them`);
  return "bfloat16";
}

/** The command line's command. Throws a CommanderError for wrong flags, and for `--help` after it was shown. */
export function parseOptions(args: readonly string[]): ImagesCommand {
  let chosen: ImagesCommand | undefined;
  const main = command(
    "npm start -w images --",
    "Trains ResNets on images, with the command line of apex's ImageNet trainer: `DIR --arch resnet18 --fp16 …`.",
  );
  const chooseTraining = (
    {
      sync_bn: syncBatchNorm = false,
      bf16,
      startEpoch,
      ...others
    }: Partial<TrainCommand> & ShortFlags,
    directory: string | undefined,
  ): void => {
    requireFirstEpoch(startEpoch, others.resume);
    const flags = bf16 ? { ...others, precision: bfloat16Alone(others) } : others;
    if (syncBatchNorm && flags.exchange === "diloco")
      throw new UsageError(
        "--sync_bn is for processes that step together, and those of --exchange diloco do not: leave one out",
      );
    const { labels, testLabels, fileColumn, labelColumn, multiLabel, evaluate } = flags;
    const hasFile = (labels ?? (evaluate ? testLabels : undefined)) !== undefined;
    if ((testLabels ?? fileColumn ?? labelColumn ?? multiLabel) !== undefined && !hasFile)
      throw new UsageError(
        "--test-labels, --file-column, --label-column and --multi-label are of a file of labels: name it by --labels",
      );
    if (hasFile && (directory === undefined || !multiLabel))
      throw new UsageError(
        "--labels is for images that may have any number of labels: give the folder of images, DIR, and --multi-label",
      );
    const standard = directory === undefined ? demonstration : apex;
    const given = Object.entries(flags).filter(([, value]) => value !== undefined);
    const { arch, stem, ...usual } = standard;
    chosen = {
      ...{ command: "train", directory, syncBatchNorm },
      ...usual,
      // Weights have an architecture of their own.
      ...(flags.pretrained === undefined && { arch, stem }),
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
  exportFlags(
    main
      .command("export <file>")
      .description("writes a network as safetensors for torchvision, or as ONNX"),
  ).action((file: string, flags) => {
    chosen = { command: "export", file, ...flags };
  });
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
  main.parse(args.map(asSpelled), { from: "user" });
  return chosen as unknown as ImagesCommand;
}
