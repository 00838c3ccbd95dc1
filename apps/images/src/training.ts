import { join } from "node:path";
import type { Summary } from "@halfstep/trainer";
import {
  dumpFirstPlan,
  followTraining,
  openRuntime,
  resumePoint,
  type Settings,
  savedSettings,
} from "@halfstep/trainer/cli";
import { RunFolder, resultsTable, stopSignals } from "@halfstep/trainer/node";
import { mnistDirectory, openTraining } from "./data.js";
import { classLines } from "./evaluate.js";
import { firstOf } from "./images.js";
import { print, say } from "./inference.js";
import { networkFor } from "./model.js";
import { demonstration, type TrainCommand } from "./options.js";
import { choosePrecision } from "./precision.js";
import { type ImagesRun, stepsOf, trainImages } from "./train.js";
import { loadPretrained } from "./weights.js";

/** Steps that `--prof` looks at. */
const profiled = 10;

/** `DIR …`: trains a network, and tests it. */
export async function train(options: TrainCommand): Promise<number> {
  const stop = stopSignals();
  const { recipe, scaler, warnings } = choosePrecision(options);
  for (const warning of warnings) say(warning);
  if (options.deterministic)
    say(`--deterministic: no kernel depends on the order of threads; the seed is ${options.seed}`);
  if (options.directory === undefined)
    say(
      `no DIR: a demonstration on MNIST, with defaults of its own (${demonstration.arch}, ${demonstration.limit} images, ${demonstration.epochs} epochs)`,
    );
  const directory = options.directory ?? mnistDirectory();
  const data = await openTraining(directory, options);
  const folder = new RunFolder(options.out, { onNote: say });
  try {
    const settings = settingsOf(options, recipe.name);
    const checkpoint = await resumePoint({
      ...{ resume: options.resume, store: folder.checkpoints, out: options.out },
      ...{ settings, onNote: say },
    });
    const { runtime, device, described, close } = await openRuntime({ ...options, onNote: say });
    const run: ImagesRun = {
      ...options,
      ...data,
      ...{ recipe, scaler, runtime, device, signal: stop.signal },
      network: networkFor(options, data.view),
      train: firstOf(data.train, options.limit),
      test: firstOf(data.test, options.limit),
      maxSteps: options.prof === undefined ? options.maxSteps : options.prof + profiled,
    };
    say(
      `${data.name}: ${run.train.count} training and ${run.test.count} test images of ${data.view.classes.length} classes · ${options.arch}, ${recipe.name} · ${described.adapter} · writing to ${options.out}`,
    );
    const progress = followTraining({
      ...{ label: recipe.name, epochs: run.epochs, steps: stepsOf(run), folder },
      batchSize: Math.min(run.batchSize * run.accumulate, run.train.count),
    });
    const result = await trainImages({
      ...run,
      ...(options.pretrained !== undefined && {
        prepare: (model) => loadPretrained(model, options.pretrained as string, recipe, say),
      }),
      hooks: {
        progress,
        ...(options.dumpPlan && { plan: dumpFirstPlan(runtime, say) }),
      },
      checkpoints: {
        store: folder.checkpoints,
        parts: { log: folder, settings: savedSettings(settings) },
        every: { steps: options.saveEvery },
        ...{ resume: checkpoint, onNote: say },
      },
    }).finally(progress.stop);
    close();
    if (!result) {
      say(`stopped; --resume auto --out ${options.out} goes on from here`);
      return stop.exitCode() ?? 1;
    }
    const { seed } = options;
    const runs = [result.summary];
    const summary: Summary = { schema: 1, task: "images", seed, device: described, runs };
    await folder.finish(summary);
    if (options.prof !== undefined) say(profile(result.summary));
    print(
      options.json
        ? JSON.stringify(summary, undefined, 2)
        : `${resultsTable(summary)}\n${classLines(result.score)}`,
    );
    say(`report: ${join(options.out, "report.html")}`);
    return 0;
  } finally {
    folder.close();
  }
}

/** What has to be the same when training goes on, by flag. */
const settingsOf = (options: TrainCommand, precision: string): Settings => ({
  directory: options.directory ?? null,
  precision,
  ...{ arch: options.arch, width: options.width ?? null, stem: options.stem ?? null },
  ...{ epochs: options.epochs, "batch-size": options.batchSize, accumulate: options.accumulate },
  ...{ lr: options.lr, momentum: options.momentum, "weight-decay": options.weightDecay },
  ...{ "norm-decay": options.normDecay, "warm-up": options.warmUp },
  ...{ milestones: options.milestones.join(), "label-smoothing": options.labelSmoothing },
  ...{ limit: options.limit ?? null, "image-size": options.imageSize ?? null },
  ...{ "crop-scale": options.cropScale, flip: options.flip ?? null, augment: options.augment },
  ...{ "eval-every": options.evalEvery, seed: options.seed },
  pretrained: options.pretrained ?? null,
  "static-loss-scale": options.staticLossScale ?? null,
  "dynamic-loss-scale": options.dynamicLossScale ?? false,
  "loss-scale": options.lossScale ?? null,
  "init-scale": options.initScale ?? null,
});

/** Where the time of a step went, for people. */
const profile = ({ msPerStep, deviceMsPerStep, phases = {}, perStep }: Summary["runs"][number]) =>
  [
    `a step: ${msPerStep.toFixed(1)} ms, on the device's clock ${deviceMsPerStep?.toFixed(1) ?? "unknown"}; ${perStep.dispatches} dispatches, ${perStep.hostWaits} waits`,
    ...Object.entries(phases).map(
      ([name, { milliseconds, times }]) =>
        `${name}: ${milliseconds.toFixed(0)} ms in ${times} times`,
    ),
  ].join("\n");
