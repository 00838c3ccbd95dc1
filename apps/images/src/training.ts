import {
  balancedPositives,
  loadPretrained,
  type PretrainedWeights,
  type RunSummary,
} from "@halfstep/trainer";
import {
  classWeightsOf,
  openRun,
  readPretrained,
  type Settings,
  say,
  UsageError,
} from "@halfstep/trainer/cli";
import { classSections } from "@halfstep/trainer/report";
import { describeClasses, imagesOf } from "./classes.js";
import { mnistDirectory, openTraining, type View } from "./data.js";
import { classLines } from "./evaluate.js";
import { sampleOf } from "./images.js";
import { type NetworkOptions, networkFor, stemOf, usualImageSize } from "./model.js";
import { demonstration, type TrainCommand } from "./options.js";
import { choosePrecision } from "./precision.js";
import { head, networkOfWeights } from "./pretrained.js";
import { samplesOf } from "./samples.js";
import { samplesPerStep, stepsOf, trainImages } from "./train.js";

/** Steps that `--prof` measures. */
const profiled = 10;

/** `DIR …`: trains a network, and tests it. */
export async function train(options: TrainCommand): Promise<number> {
  const { recipe, scaler, warnings } = choosePrecision(options);
  for (const warning of warnings) say(warning);
  if (options.deterministic)
    say(`--deterministic: no kernel depends on the order of threads; the seed is ${options.seed}`);
  if (options.directory === undefined)
    say(
      `no DIR: a demonstration on MNIST, with defaults of its own (${demonstration.arch}, ${demonstration.limit} images, ${demonstration.epochs} epochs)`,
    );
  const directory = options.directory ?? mnistDirectory();
  const given = await readPretrained(options);
  const pretrainedNetwork = given && networkOfPretrained(options, given);
  const data = await openTraining(directory, {
    ...options,
    imageSize: options.imageSize ?? usualImageSize(stemFor(options, pretrainedNetwork)),
  });
  const settings = settingsOf(options, recipe.name);
  requireMemory(options, data.view);
  const dataFacts = { classes: data.view.classes, "training images": data.train.count };
  using opened = await openRun({ ...options, task: "images", settings, dataFacts });
  const run = {
    ...options,
    ...data,
    ...{ recipe, scaler, job: opened.job },
    network: networkOf(options, data.view, pretrainedNetwork),
    train: sampleOf(data.train, options.limit, options.seed),
    test: sampleOf(data.test, options.limit, options.seed),
    maxSteps: options.prof === undefined ? options.maxSteps : options.prof + profiled,
  };
  say(
    `${data.name}: ${run.train.count} training and ${run.test.count} test images of ${data.view.classes.length} classes · ${options.arch ?? `the network of ${options.pretrained}`}, ${recipe.name} · ${opened.described.adapter} · writing to ${options.out}`,
  );
  for (const line of describeClasses(run.train, data.view.classes)) say(line);
  const classWeights = await classWeightsOf(
    options,
    {
      labels: data.view.classes,
      counts: imagesOf(run.train, data.view.classes.length),
    },
    data.view.multiLabel ? (counts) => balancedPositives(counts, run.train.count) : undefined,
  );
  const context = opened.follow({
    ...{ label: recipe.name, epochs: run.epochs, steps: stepsOf(run) },
    batchSize: samplesPerStep(run),
  });
  const result = await trainImages({
    ...{ ...run, classWeights },
    ...context,
    prepare: (model) => given && loadPretrained(model, { ...given, head, recipe, onNote: say }),
  });
  if (!result) return opened.finish(undefined);
  const { summary, mistakes, counts } = result;
  return opened.finish(summary, {
    lossUnit: "nats",
    samples: await samplesOf(run.test, data.view, mistakes),
    lines: classLines(result),
    ...(counts && { sections: classSections(counts) }),
    ...(options.prof !== undefined && { note: profile(summary) }),
  });
}

/** The network of the weights to start from, unless `--arch` names one. */
function networkOfPretrained(
  { arch, ...flags }: TrainCommand,
  { weights, source }: Pick<PretrainedWeights, "weights" | "source">,
): NetworkOptions | undefined {
  if (arch !== undefined) return undefined;
  if ((flags.width ?? flags.stem ?? flags.shortcut) !== undefined)
    throw new UsageError("--width, --stem and --shortcut are of --arch: give it, too");
  return networkOfWeights(weights, source);
}

/** Without `--arch` and weights: apex's. */
const usualArch = "resnet18";

const stemFor = (
  { stem, arch = usualArch }: TrainCommand,
  pretrained: NetworkOptions | undefined,
): NetworkOptions["stem"] => pretrained?.stem ?? stem ?? stemOf(arch);

/** The network of the weights to start from, or that of flags, for images of some kind. */
const networkOf = (
  { arch = usualArch, ...flags }: TrainCommand,
  view: View,
  pretrained: NetworkOptions | undefined,
): NetworkOptions =>
  pretrained
    ? { ...pretrained, classes: view.classes.length, channels: view.channels }
    : networkFor({ ...flags, arch }, view);

/** The most bytes of a batch of images. */
const mostBatchBytes = 2 ** 31;

/** @throws UsageError where a batch of images would be larger than any device takes */
function requireMemory({ batchSize }: TrainCommand, { size, channels }: View): void {
  const bytes = 4 * batchSize * size ** 2 * channels;
  if (bytes > mostBatchBytes)
    throw new UsageError(
      `${batchSize} images of ${size}×${size} pixels take ${(bytes / 2 ** 30).toFixed(1)} GiB, and a batch may have 2: lower --batch-size or --image-size`,
    );
}

/** Settings that must be the same in a resumed run, by flag. */
const settingsOf = (options: TrainCommand, precision: string): Settings => ({
  directory: options.directory ?? null,
  ...{ labels: options.labels ?? null, "test-labels": options.testLabels ?? null },
  ...{ "file-column": options.fileColumn ?? null, "label-column": options.labelColumn ?? null },
  precision,
  ...{ arch: options.arch ?? null, width: options.width ?? null, stem: options.stem ?? null },
  ...{ shortcut: options.shortcut ?? null, mean: options.mean ?? null, std: options.std ?? null },
  ...{ epochs: options.epochs, "batch-size": options.batchSize, accumulate: options.accumulate },
  ...{ lr: options.lr, momentum: options.momentum, "weight-decay": options.weightDecay },
  ...{ "norm-decay": options.normDecay, "warm-up": options.warmUp },
  ...{ milestones: options.milestones, "label-smoothing": options.labelSmoothing },
  "class-weights": options.classWeights ?? null,
  ...{ limit: options.limit ?? null, "image-size": options.imageSize ?? null },
  zoom: options.zoom ?? null,
  ...{ "crop-scale": options.cropScale, flip: options.flip ?? null, augment: options.augment },
  ...{ "eval-every": options.evalEvery, seed: options.seed, sync_bn: options.syncBatchNorm },
  ...{ pretrained: options.pretrained ?? null, key: options.key ?? null },
  "static-loss-scale": options.staticLossScale ?? null,
  "dynamic-loss-scale": options.dynamicLossScale ?? false,
  "loss-scale": options.lossScale ?? null,
  "init-scale": options.initScale ?? null,
});

/** The time of a step by phase, for people. */
const profile = ({ msPerStep, deviceMsPerStep, phases = {}, perStep }: RunSummary): string =>
  [
    `a step: ${msPerStep.toFixed(1)} ms, on the device's clock ${deviceMsPerStep?.toFixed(1) ?? "unknown"}; ${perStep.dispatches} dispatches, ${perStep.hostWaits} waits`,
    ...Object.entries(phases).map(
      ([name, { milliseconds, times }]) =>
        `${name}: ${milliseconds.toFixed(0)} ms in ${times} times`,
    ),
  ].join("\n");
