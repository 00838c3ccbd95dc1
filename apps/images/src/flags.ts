import type { ApexLevel } from "@halfstep/autocast";
import {
  classFlags,
  fraction,
  jobDefaults,
  lossScale,
  notNegative,
  oneOf,
  onnxFlag,
  pretrainedFlags,
  runFlags,
  trackerDefaults,
  wholeNumber,
} from "@halfstep/trainer/cli";
import { type Command, InvalidArgumentError } from "commander";
import { architectures } from "./model.js";

/** Flags of apex's ImageNet trainers that have nothing to choose here. */
const flagsWithoutEffect = (each: Command): Command =>
  each
    .option("-p, --print-freq <n>", "accepted, and without effect: every step is in metrics.jsonl")
    .option("--channels-last", "accepted, and without effect: images always are")
    .option("--local_rank <n>", "accepted, and without effect: launchers say it to each process")
    .option("--world-size <n>", "accepted, and without effect: as --local_rank");

/** Adds the flags of training: those of apex's ImageNet trainers as they are spelled there, and our own. */
export const trainFlags = (train: Command): Command =>
  runFlags(
    pretrainedFlags(
      classFlags(viewFlags(flagsWithoutEffect(train))),
      "start from weights of torch or safetensors, or --evaluate them; they decide --arch if it is not given",
    )
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
      .option(
        "--shortcut <name>",
        "projection, or padding: the paper's for CIFAR-10, without parameters (default: projection)",
        oneOf(["projection", "padding"]),
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
      .option("--fp16", "float16 with float32 masters and batch norm: FP16_Optimizer")
      .option("--bf16", "bfloat16: --precision bfloat16")
      .option(
        "--static-loss-scale <scale>",
        "float16: a fixed loss scale (default: 1); it means --fp16",
        lossScale("static"),
      )
      .option(
        "--dynamic-loss-scale",
        "float16: a dynamic loss scale; supersedes --static-loss-scale",
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
        "--init-scale <scale>",
        "where a dynamic loss scale starts (default: as apex)",
        lossScale(),
      )
      .option(
        "--sync_bn",
        "in a job: batch norms normalise by the batch of all processes, as apex's",
        false,
      )
      .option(
        "--limit <n>",
        "train on n images and test on at most n, with the classes in their proportions",
        wholeNumber(2),
      )
      .option("--labels <file>", "a CSV or TSV file with names of images of DIR, and their labels")
      .option("--test-labels <file>", "test on this file, and train on all of --labels")
      .option("--file-column <name>", "of --labels, by name or number (default: the first)")
      .option(
        "--label-column <names>",
        "of --labels, by name or number, or several by commas that have 1 or 0 (default: the second of two)",
      )
      .option(
        "--multi-label",
        "an image of --labels may have any number of labels: between |, commas or spaces, or in columns with 1",
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
      .option(
        "-e, --evaluate",
        "test the network of --resume, or the best of --out, and end",
        false,
      )
      .option(
        "--start-epoch <n>",
        "0, or with --resume: training goes on where it stopped",
        wholeNumber(0),
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
      ...{ precision: undefined, epochs: undefined, maxSteps: undefined, batchSize: undefined },
      ...{ lr: undefined, seed: 0, accumulate: 1, saveEvery: 500 },
      ...{
        resume: undefined,
        out: "runs/images",
        adapter: undefined,
        device: undefined,
        json: false,
        dumpPlan: false,
        tensorboard: false,
        ...trackerDefaults,
        ...jobDefaults,
      },
    },
    {
      precision: { description: "another recipe: float16, bfloat16, mixed_float16, …" },
      epochs: { description: "passes over the training images (default: 90)" },
      batchSize: {
        also: "-b",
        description: "images in a batch (default: 256)",
        parse: wholeNumber(2),
      },
      lr: {
        also: "--learning-rate",
        description: "for 256 images in a step; scaled by their number (default: 0.1)",
      },
    },
  );

/** Adds the flags of `predict`. */
export const predictFlags = (predict: Command): Command =>
  runFlags(
    pretrainedFlags(
      viewFlags(modelFlag(predict)),
      "weights of torch or safetensors, in place of --model",
    )
      .option("--half", "compute in float16", false)
      .option("--classes <names>", "of --pretrained: names by commas, or a file with one a line"),
    { batchSize: 32, adapter: undefined, device: undefined, json: false },
    {
      batchSize: { description: "images in a batch" },
      json: { description: "print JSON instead of lines" },
    },
  );

/** Adds the flags of `export`. */
export const exportFlags = (each: Command): Command =>
  onnxFlag(runFlags(modelFlag(each), { adapter: undefined, device: undefined }));

/** Adds the flags of how a network sees images. */
const viewFlags = (each: Command): Command =>
  each
    .option(
      "--image-size <n>",
      "pixels of a side that image files are brought to (default: 224, and 32 for networks of CIFAR-10)",
      imageSide,
    )
    .option(
      "--zoom <x>",
      "tests see the middle of image files at x times the size (default: 256/224, and files of the right size whole)",
      zoomFactor,
    )
    .option("--no-zoom", "tests see the middle of image files at their size")
    .option(
      "--mean <list>",
      "of each channel, from 0 to 1 (default: ImageNet's for image files, else that of the training images)",
      numberList,
    )
    .option("--std <list>", "as --mean", positiveList);

const modelFlag = (each: Command): Command =>
  each.option("--model <dir>", "the --out folder of a training, or a checkpoint", "runs/images");

/** The most pixels of a side. */
const mostSide = 8192;

function imageSide(text: string): number {
  const side = wholeNumber(8)(text);
  if (side > mostSide) throw new InvalidArgumentError(`it must be at most ${mostSide}.`);
  return side;
}

function zoomFactor(text: string): number {
  const factor = Number(text);
  if (!(factor >= 1 && factor <= 4)) throw new InvalidArgumentError("it must be from 1 to 4.");
  return factor;
}

function numberList(text: string): readonly number[] {
  const numbers = text.split(",").map(Number);
  if (text.trim() === "" || !numbers.every(Number.isFinite))
    throw new InvalidArgumentError("it must be numbers with commas between them.");
  return numbers;
}

function positiveList(text: string): readonly number[] {
  const numbers = numberList(text);
  if (!numbers.every((number) => number > 0))
    throw new InvalidArgumentError("it must be numbers above 0.");
  return numbers;
}

function epochList(text: string): readonly number[] {
  const epochs = text === "" ? [] : text.split(",").map(wholeNumber(1));
  if (epochs.some((epoch, i) => i > 0 && epoch <= (epochs[i - 1] as number)))
    throw new InvalidArgumentError("epochs must rise.");
  return epochs;
}
