import { noteRange, recipeFor } from "@halfstep/trainer";
import {
  noteUnusedScale,
  openRun,
  openRuntime,
  print,
  program,
  type Settings,
  say,
  settingsOf,
  UsageError,
} from "@halfstep/trainer/cli";
import { comparePrecisions, comparisonTable } from "./compare.js";
import { exportNetwork } from "./export.js";
import { fineTune } from "./fine-tune.js";
import { readPicture, requireWritten, writePicture } from "./images.js";
import {
  type EvaluateCommand,
  type PredictCommand,
  parseOptions,
  type TrainCommand,
} from "./options.js";
import { readPictures } from "./pairs.js";
import { BeforeAndAfter } from "./samples.js";
import { openModel } from "./saved-model.js";
import { upscale, upscalerOf } from "./upscale.js";

/** The number of steps that count as an epoch, because random crops are unlimited. */
const stepsPerEpoch = 100;

await program(async (args) => {
  const options = parseOptions(args);
  switch (options.command) {
    case "train":
      return await train(options);
    case "evaluate":
      return await evaluate(options);
    case "predict":
      return await predict(options);
    case "export":
      return await exportNetwork(options);
  }
});

async function train(options: TrainCommand): Promise<number> {
  const pictures = await readPictures(options.images);
  noteUnusedScale([options.precision], { staticLossScale: options.staticLossScale }, say);
  using run = await openRun({
    ...options,
    task: "super-resolution",
    settings: settings(options),
    dataFacts: { "training images": pictures.train.length },
  });
  const model = await openModel(run.runtime, options);
  if (options.pretrained !== undefined) {
    say(`weights of ${options.pretrained}`);
    noteRange(await model.stateDict(), recipeFor(options.precision), say);
  }
  if (options.crop % model.scale !== 0)
    throw new UsageError(`--crop ${options.crop} is no multiple of ${model.scale}`);
  say(
    `${pictures.train.length} images, and ${pictures.test.length} to judge by · ${run.described.adapter} · writing to ${options.out}`,
  );
  const context = run.follow({
    label: options.precision,
    epochs: Math.ceil(options.maxSteps / stepsPerEpoch),
    steps: options.maxSteps,
    batchSize: options.batchSize,
  });
  const [judged] = pictures.test;
  const samples = judged && (await BeforeAndAfter.of(model, judged, options.kernel));
  const upscaler = upscalerOf(context.runtime, context.device, model);
  await samples?.before(upscaler);
  const summary = await fineTune({ ...options, ...context, model, pictures, stepsPerEpoch });
  if (!summary || !samples) return run.finish(summary);
  return run.finish(summary, {
    lossUnit: "mean difference of pixels",
    samples: await samples.after(upscaler),
  });
}

/** The settings that must be unchanged when training is resumed, by flag. */
function settings(options: TrainCommand): Settings {
  return settingsOf(options, [
    "images",
    "pretrained",
    "key",
    "kernel",
    "crop",
    "precision",
    "maxSteps",
    "batchSize",
    "lr",
    "seed",
    "staticLossScale",
    "initScale",
  ]);
}

async function evaluate(options: EvaluateCommand): Promise<number> {
  const pictures = await readPictures(options.images);
  say(`judged by ${options.images ?? "the photograph of the package"}`);
  const comparison = await comparePrecisions({ ...options, pictures: pictures.test, onNote: say });
  print(options.json ? JSON.stringify(comparison, undefined, 2) : comparisonTable(comparison));
  return 0;
}

async function predict(options: PredictCommand): Promise<number> {
  requireWritten(options.output, options.input);
  const image = await readPicture(options.input);
  const { runtime, device, close } = await openRuntime({ ...options, onNote: say });
  const model = await openModel(runtime, options);
  const upscaler = upscalerOf(runtime, device, model);
  if (options.half) upscaler.half();
  const result = await upscale(upscaler, model, image, options.tile);
  const { milliseconds, batches, peakBytes } = await upscaler.usage();
  close();
  await writePicture(options.output, result);
  say(
    `${options.output}: ${result.width}×${result.height} pixels · ${batches} ${batches === 1 ? "tile" : "tiles"} in ${(milliseconds / 1000).toFixed(1)} s · ${(peakBytes / 2 ** 20).toFixed(1)} MiB`,
  );
  return 0;
}
