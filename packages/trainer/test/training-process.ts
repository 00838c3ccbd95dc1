// A training in a process of its own, to be killed: node training-process.js DIRECTORY SETTINGS
import { requestDevice } from "@halfstep/device/node";
import { cpuRuntime, gpuRuntime } from "@halfstep/tensor";
import { CheckpointError } from "../src/checkpoint/checkpoint-error.js";
import { StorageError } from "../src/errors.js";
import { RunFolder } from "../src/run-folder.js";
import { stopSignals } from "../src/stop-signals.js";
import { watchedFileSystem } from "./faulty-file-system.js";
import { trainResumable } from "./resumable.js";

/** What the process does besides training. */
export interface ProcessSettings {
  readonly device?: "cpu" | "gpu";
  /** Ends itself by SIGKILL before this operation of its file system, counted from 1. */
  readonly killAt?: number;
  /** Never returns from this operation. */
  readonly hangAt?: number;
  /** Gets SIGTERM while it records this micro-step. */
  readonly terminateAt?: number;
  /** Gives up the right to write where permissions say so. */
  readonly unprivileged?: boolean;
}

const [directory = "", settings = "{}"] = process.argv.slice(2);
const { device, killAt, hangAt, terminateAt, unprivileged }: ProcessSettings = JSON.parse(settings);
const stop = stopSignals({ echo: 0 });
process.exitCode = await run().catch((error: unknown) => {
  process.stderr.write(`${error instanceof Error ? error.message : error}\n`);
  return error instanceof StorageError ? 4 : error instanceof CheckpointError ? 2 : 1;
});

async function run(): Promise<number> {
  // Nobody: what the superuser may do says nothing about permissions.
  if (unprivileged && process.getuid?.() === 0) process.seteuid?.(65534);
  const gpu = device === "gpu" ? await requestDevice() : undefined;
  let operations = 0;
  const fileSystem = watchedFileSystem((): undefined | Promise<never> => {
    operations++;
    if (operations === killAt) process.kill(process.pid, "SIGKILL");
    if (operations !== hangAt) return undefined;
    process.stdout.write("hangs\n");
    return new Promise<never>(() => setInterval(() => {}, 1000));
  });
  const onNote = (line: string): unknown => process.stderr.write(`${line}\n`);
  const folder = new RunFolder(directory, { fileSystem, onNote });
  process.stdout.write("ready\n");
  try {
    const { isAborted } = await trainResumable({
      runtime: gpu ? gpuRuntime(gpu) : cpuRuntime(),
      ...{ folder, onNote, every: { steps: 1 }, resume: "auto" },
      onMicroStep: (count) => {
        if (count === terminateAt) process.emit("SIGTERM");
      },
      options: { signal: stop.signal },
    });
    process.stdout.write("done\n");
    return isAborted ? (stop.exitCode() ?? 1) : 0;
  } finally {
    folder.close();
    gpu?.destroy();
  }
}
