import { join } from "node:path";
import type { DigitsCnn } from "@halfstep/models";
import {
  describeImbalance,
  loadPretrained,
  type RunDevice,
  type RunSummary,
  recipeFor,
} from "@halfstep/trainer";
import {
  classWeightsOf,
  eventsOf,
  flagsOf,
  followTraining,
  noteUnusedScale,
  type OpenedRuntime,
  openRuntime,
  openTrackers,
  print,
  program,
  readPretrained,
  removeEvents,
  reportOutcome,
  resumePoint,
  savedSettings,
  say,
  track,
} from "@halfstep/trainer/cli";
import { RunFolder, resultsTable, stopSignals } from "@halfstep/trainer/node";
import { confusionSections } from "./confusion.js";
import { digitCounts, digitNames, readDigits, sampleOf } from "./data.js";
import { stepsOf, trainDigits } from "./digits.js";
import { head, pixelsFirst } from "./network.js";
import { parseOptions, type TrainCommand } from "./options.js";
import { checkpointsOf, runsDone, savedRuns, settingsOf, storesOf } from "./resume.js";
import { samplesOf } from "./samples.js";
import { evaluate, predict } from "./use.js";

/** Number of training images on the CPU. */
const cpuLimit = 3000;

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
  const data = await readDigits(options);
  noteUnusedScale(options.precision, { staticLossScale: options.staticLossScale }, say);
  const given = await readPretrained(options);
  const weights = given && pixelsFirst(given.weights);
  const folder = new RunFolder(options.out, { onNote: say });
  try {
    const checkpoint = await resumePoint({
      resume: options.resume,
      store: storesOf(options),
      out: options.out,
      onNote: say,
    });
    const trackers = await openTrackers(options);
    const first = await open(options);
    const limit = options.limit ?? (first.device ? undefined : cpuLimit);
    const sets = {
      train: sampleOf(data.train, limit, options.seed),
      test: sampleOf(data.test, limit, options.seed),
    };
    say(
      `MNIST: ${sets.train.count} training and ${sets.test.count} test images · ${first.described.adapter} · writing to ${options.out}`,
    );
    const counts = digitCounts(sets.train);
    const imbalance = describeImbalance(digitNames, counts);
    if (imbalance !== undefined) say(imbalance);
    const classWeights = await classWeightsOf(options, { labels: digitNames, counts });
    const settings = settingsOf(options, sets.train.count);
    if (!checkpoint) removeEvents(options.out);
    const runs: RunSummary[] = checkpoint ? [...runsDone(checkpoint, settings)] : [];
    const resumed = runs.length;
    const predictions = new Map<string, number[]>();
    let described: RunDevice = first.described;
    for (const [i, precision] of options.precision.entries()) {
      if (i < resumed) continue;
      const store = checkpointsOf(options.out, precision);
      // Checkpoints of later precisions belong to an abandoned run.
      if (i > resumed) await store.clear();
      // Each run has a device of its own, so that its peak memory is its own.
      const { runtime, device, ...opened } = i === resumed ? first : await open(options, first);
      described = opened.described;
      const resume = i === resumed ? checkpoint : undefined;
      const checkpoints = {
        store,
        parts: { log: folder, settings: savedSettings(settings), runs: savedRuns(runs) },
        every: { steps: options.saveEvery },
        ...{ resume, onNote: say },
      };
      const digits: number[] = [];
      const run = {
        ...{ ...options, ...sets, classWeights, precision, device },
        ...{ signal: stop.signal, checkpoints },
        prepare: (model: DigitsCnn): unknown =>
          weights &&
          loadPretrained(model, {
            ...{ ...given, weights, head },
            ...{ recipe: recipeFor(precision), onNote: say },
          }),
        onTested: (tested: Uint32Array): unknown => digits.push(...tested),
      };
      const progress = followTraining({
        label: precision.padEnd(8),
        epochs: run.epochs,
        steps: stepsOf(run),
        batchSize: Math.min(run.batchSize, sets.train.count),
        folder,
      });
      const tensorBoard = options.tensorboard && eventsOf(options.out, precision, resume);
      const tracked = track(
        trackers,
        { name: `digits ${precision}`, settings: flagsOf(options), onNote: progress.note },
        resume,
      );
      const hooks = { progress, ...(tensorBoard && { tensorBoard }), ...tracked.hooks };
      let summary: RunSummary | undefined;
      try {
        summary = await trainDigits({ ...run, runtime, hooks });
      } finally {
        await tracked.close(summary);
        progress.stop();
        if (tensorBoard) tensorBoard.close();
      }
      opened.close();
      if (!summary) {
        say(`stopped; --resume auto --out ${options.out} goes on from here`);
        return stop.exitCode() ?? 1;
      }
      runs.push(summary);
      predictions.set(precision, digits);
    }
    const summary = await folder.finish(
      {
        ...{ schema: 1, task: "digits", seed: options.seed, device: described, runs },
        settings: { ...flagsOf(options), ...settings },
      },
      {
        lossUnit: "nats",
        samples: samplesOf(sets.test, predictions),
        sections: [...predictions].flatMap(([precision, digits]) =>
          confusionSections(precision, sets.test, digits),
        ),
      },
    );
    print(options.json ? JSON.stringify(summary, undefined, 2) : resultsTable(summary));
    say(`report: ${join(options.out, "report.html")}`);
    return reportOutcome(summary, say);
  } finally {
    folder.close();
  }
}

/** A runtime on what the options name; after the first one, on the same kind of device. */
function open(
  { adapter, device, limit }: TrainCommand,
  like?: OpenedRuntime,
): Promise<OpenedRuntime> {
  return openRuntime({
    adapter,
    device: device ?? like?.described.kind,
    onNote: (line) => say(`${line}, on ${limit ?? cpuLimit} images`),
  });
}
