import { join } from "node:path";
import type { Summary } from "@halfstep/trainer";
import {
  followTraining,
  openRuntime,
  program,
  resumePoint,
  type Settings,
  savedSettings,
  UsageError,
} from "@halfstep/trainer/cli";
import { RunFolder, resultsTable, stopSignals } from "@halfstep/trainer/node";
import { comparePrecisions, comparisonTable } from "./compare.js";
import { fineTune } from "./fine-tune.js";
import { readPicture, requireWritten, writePicture } from "./images.js";
import {
  type EvaluateCommand,
  type PredictCommand,
  parseOptions,
  type TrainCommand,
} from "./options.js";
import { readPictures } from "./pairs.js";
import { pretrained } from "./pretrained.js";
import { openModel } from "./saved-model.js";
import { upscale, upscalerOf } from "./upscale.js";

/** Steps that are an epoch: there is no end of random crops. */
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
  }
});

async function train(options: TrainCommand): Promise<number> {
  const stop = stopSignals();
  const pictures = await readPictures(options.images);
  const folder = new RunFolder(options.out, { onNote: say });
  try {
    const settings = settingsOf(options);
    const checkpoint = await resumePoint({
      resume: options.resume,
      store: folder.checkpoints,
      out: options.out,
      settings,
      onNote: say,
    });
    const { runtime, device, described, close } = await openRuntime({ ...options, onNote: say });
    const model = await pretrained(runtime);
    if (options.crop % model.scale !== 0)
      throw new UsageError(`--crop ${options.crop} is no multiple of ${model.scale}`);
    say(
      `${pictures.train.length} images, and ${pictures.test.length} to judge by · ${described.adapter} · writing to ${options.out}`,
    );
    const progress = followTraining({
      label: options.precision,
      epochs: Math.ceil(options.maxSteps / stepsPerEpoch),
      steps: options.maxSteps,
      batchSize: options.batchSize,
      folder,
    });
    const result = await fineTune({
      ...options,
      runtime,
      device,
      model,
      pictures,
      stepsPerEpoch,
      signal: stop.signal,
      hooks: { progress },
      checkpoints: {
        store: folder.checkpoints,
        parts: { log: folder, settings: savedSettings(settings) },
        every: { steps: options.saveEvery },
        resume: checkpoint,
        onNote: say,
      },
    }).finally(progress.stop);
    close();
    if (!result) {
      say(`stopped; --resume auto --out ${options.out} goes on from here`);
      return stop.exitCode() ?? 1;
    }
    const summary: Summary = {
      schema: 1,
      task: "super-resolution",
      seed: options.seed,
      device: described,
      runs: [result],
    };
    await folder.finish(summary);
    print(options.json ? JSON.stringify(summary, undefined, 2) : resultsTable(summary));
    say(`report: ${join(options.out, "report.html")}`);
    return 0;
  } finally {
    folder.close();
  }
}

/** What has to be the same when training goes on, by flag. */
function settingsOf(options: TrainCommand): Settings {
  return {
    images: options.images ?? null,
    kernel: options.kernel,
    crop: options.crop,
    precision: options.precision,
    "max-steps": options.maxSteps,
    "batch-size": options.batchSize,
    lr: options.lr,
    seed: options.seed,
    "static-loss-scale": options.staticLossScale ?? null,
    "init-scale": options.initScale,
  };
}

async function evaluate(options: EvaluateCommand): Promise<number> {
  const pictures = await readPictures(options.images);
  const comparison = await comparePrecisions({ ...options, pictures: pictures.test, onNote: say });
  print(options.json ? JSON.stringify(comparison, undefined, 2) : comparisonTable(comparison));
  return 0;
}

async function predict(options: PredictCommand): Promise<number> {
  requireWritten(options.output);
  const image = await readPicture(options.input);
  const { runtime, device, close } = await openRuntime({ ...options, onNote: say });
  const model = await openModel(runtime, options.model);
  const upscaler = upscalerOf(runtime, device, model);
  if (options.half) upscaler.half();
  const result = await upscale(upscaler, model, image, options.tile);
  const { milliseconds, batches, peakBytes } = await upscaler.usage();
  close();
  await writePicture(options.output, result);
  say(
    `${options.output}: ${result.width}×${result.height} pixels · ${batches} tiles in ${(milliseconds / 1000).toFixed(1)} s · ${(peakBytes / 2 ** 20).toFixed(1)} MiB`,
  );
  return 0;
}

function print(text: string): void {
  process.stdout.write(`${text}\n`);
}

function say(line: string): void {
  process.stderr.write(`${line}\n`);
}
