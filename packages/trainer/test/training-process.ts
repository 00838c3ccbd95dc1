// A training in a process of its own, to be killed: node training-process.js DIRECTORY SETTINGS
import { readFileSync } from "node:fs";
import { openRuntime } from "../src/cli/open-runtime.js";
import { program } from "../src/cli/program.js";
import { RunFolder } from "../src/run-folder.js";
import { stopSignals } from "../src/stop-signals.js";
import { watchedFileSystem } from "./faulty-file-system.js";
import { trainResumable } from "./resumable.js";

/** What the process does besides training. */
export interface ProcessSettings {
  readonly device?: "cpu" | "gpu";
  /** Of the model. */
  readonly seed?: number;
  /** Ends itself by SIGKILL before this operation of its file system, counted from 1. */
  readonly killAt?: number;
  /** Never returns from this operation. */
  readonly hangAt?: number;
  /** Gets SIGTERM while it records this micro-step. */
  readonly terminateAt?: number;
  /** Destroys its device while it records this micro-step. */
  readonly loseAt?: number;
  /** Finds its data gone when it records this micro-step. */
  readonly vanishAt?: number;
  /** Gives up the right to write where permissions say so. */
  readonly unprivileged?: boolean;
}

const [directory = "", settings = "{}"] = process.argv.slice(2);
const { device = "cpu", killAt, hangAt, ...at }: ProcessSettings = JSON.parse(settings);
const stop = stopSignals({ echo: 0 });
await program(run);

async function run(): Promise<number> {
  // Runs as the user `nobody`, because permissions do not apply to the superuser.
  if (at.unprivileged && process.getuid?.() === 0) process.seteuid?.(65534);
  const opened = await openRuntime({ device });
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
      runtime: opened.runtime,
      ...{ folder, onNote, every: { steps: 1 }, resume: "auto", seed: at.seed },
      onMicroStep: (count) => {
        if (count === at.terminateAt) process.emit("SIGTERM");
        if (count === at.loseAt) opened.close();
        if (count === at.vanishAt) readFileSync("/no/such/data");
      },
      options: { signal: stop.signal, device: opened.device },
    });
    process.stdout.write("done\n");
    return isAborted ? (stop.exitCode() ?? 1) : 0;
  } finally {
    folder.close();
    opened.close();
  }
}
