import {
  closeSync,
  constants,
  existsSync,
  fstatSync,
  fsyncSync,
  ftruncateSync,
  lstatSync,
  openSync,
  readdirSync,
  renameSync,
  rmdirSync,
  rmSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import { CheckpointFolder, type CheckpointFolderOptions } from "./checkpoint/checkpoint-folder.js";
import { isOwnName, suffixes } from "./checkpoint/checkpoint-name.js";
import { machine, versions } from "./environment.js";
import { StorageError, storing } from "./errors.js";
import { type Locate, locateFrom } from "./files/located.js";
import { makeDirectory } from "./files/make-directory.js";
import { writeLocatedFile } from "./files/whole-file.js";
import { mayBeMetrics, readMetrics } from "./metrics-log.js";
import { requireKinds } from "./option-kinds.js";
import { type ReportOptions, renderReport } from "./report/render-report.js";
import { RunLock } from "./run-lock.js";
import { isEvaluation, type MetricsLine, type Summary } from "./summary.js";

/** Options of a run's folder. */
export interface RunFolderOptions extends CheckpointFolderOptions {
  /** Called with a line about leftovers of a killed run. */
  readonly onNote?: ((line: string) => void) | undefined;
}

/** The part of a log that belongs to a checkpoint. */
export interface LogState {
  readonly bytes: number;
}

/**
 * The folder of one run: `metrics.jsonl` grows with every step and evaluation, `checkpoints/` has its checkpoints, and `summary.json` and
 * `report.html` appear at the end, whole or not at all. No other run can use the folder until it is finished or closed. It stays in its place
 * where the process changes its working directory.
 *
 * As a part of checkpoints (`parts: { model, optimizer, log: folder }`) it truncates `metrics.jsonl` to its length when the checkpoint
 * was saved, so that a resumed run writes the same log as an uninterrupted one.
 */
export class RunFolder {
  readonly directory: string;
  readonly checkpoints: CheckpointFolder;
  /** The first step, or the first checkpoint, of a run that was not resumed removes those of the run before. */
  readonly removesEarlierRun: boolean = true;
  readonly #metricsPath: string;
  readonly #locate: Locate;
  readonly #lock: RunLock;
  #file: number | undefined;
  #isStarted = false;
  /** Bytes of the log that this run continues. */
  #resumed: number | undefined;

  /**
   * Makes the folder, locks it, and opens `metrics.jsonl`, so that an unwritable folder fails before training. Files of an earlier run
   * stay until the first step is recorded.
   * @throws StorageError, also where another run uses the folder, and where a file of the names above is of no run
   */
  constructor(directory: string, options: RunFolderOptions = {}) {
    const { onNote, ...others } = options;
    requireKinds("new RunFolder()", options, {
      ...{ keep: "any", fileSystem: "any", onNote: "function" },
    });
    this.directory = directory;
    this.#locate = locateFrom(directory);
    this.#metricsPath = join(directory, "metrics.jsonl");
    this.checkpoints = new CheckpointFolder(join(directory, "checkpoints"), others);
    storing(directory, () => makeDirectory(directory));
    this.#lock = new RunLock(directory);
    try {
      this.#refuseOthers();
      this.#file = storing(this.#metricsPath, () => openLog(this.#locate(this.#metricsPath)));
    } catch (error) {
      this.#lock.release();
      throw error;
    }
    if (this.#lock.note !== undefined) onNote?.(this.#lock.note);
  }

  /**
   * Appends a line to `metrics.jsonl`.
   * @throws StorageError; Error after `finish` or `close`
   */
  record(metrics: MetricsLine): void {
    const file = this.#open();
    this.#start(file);
    const finite =
      isEvaluation(metrics) || Number.isFinite(metrics.loss) ? metrics : { ...metrics, loss: null };
    const line = Buffer.from(`${JSON.stringify(finite)}\n`);
    storing(this.#metricsPath, () => {
      // A nearly full disk may write only a part of the line; the next write then fails.
      for (let at = 0; at < line.length; ) at += writeSync(file, line, at);
    });
  }

  /** The length of the log so far. Flushes the log to the disk, because a checkpoint depends on it. */
  stateDict(): LogState {
    const file = this.#open();
    this.#start(file);
    return storing(this.#metricsPath, () => {
      const stats = fstatSync(file);
      if (!stats.isFile()) return { bytes: 0 };
      fsyncSync(file);
      return { bytes: stats.size };
    });
  }

  /**
   * Continues the log of the run that saved the state. Later lines and results stay until the first step is recorded, because loading
   * other parts may still fail.
   * @throws RangeError where the log is shorter than the state; CheckpointError where it is not a log; StorageError
   */
  loadStateDict(state: LogState): void {
    const file = this.#open();
    const bytes = state?.bytes;
    const size = storing(this.#metricsPath, () => fstatSync(file).size);
    if (!Number.isSafeInteger(bytes) || bytes < 0 || bytes > size)
      throw new RangeError(
        `${this.#metricsPath} has ${size} bytes, and had ${bytes} when the checkpoint was saved: restore it, or train anew`,
      );
    // Validates the log now, not in the report after hours of training.
    if (bytes > 0) for (const _ of readMetrics(this.#metricsPath, { bytes, locate: this.#locate }));
    this.#resumed = bytes;
    this.#isStarted = false;
  }

  /**
   * Writes `summary.json`, with versions and the machine, and `report.html`, which shows the program's samples and sections, and closes
   * the folder. Returns the content of `summary.json`.
   * @throws StorageError
   *
   * @example
   * await folder.finish(summary, { samples: [{ title: "test image 3", label: "7", prediction: "1" }] });
   */
  async finish(summary: Summary, options: ReportOptions = {}): Promise<Summary> {
    if (this.#file !== undefined) this.#start(this.#file);
    this.#closeLog();
    const { runs, ...head } = summary;
    const whole = { ...head, versions: versions(), machine: machine(), runs };
    try {
      await this.#write("summary.json", `${JSON.stringify(whole, undefined, 2)}\n`);
      const metrics = [...readMetrics(this.#metricsPath, { locate: this.#locate })];
      await this.#write("report.html", await renderReport(whole, metrics, options));
      return whole;
    } finally {
      this.close();
    }
  }

  /** Closes `metrics.jsonl` and unlocks the folder, for a run without results. */
  close(): void {
    this.#closeLog();
    this.#lock.release();
  }

  #open(): number {
    if (this.#file === undefined)
      throw new Error(`${this.#metricsPath} is closed: record steps before finish()`);
    return this.#file;
  }

  #closeLog(): void {
    if (this.#file === undefined) return;
    closeSync(this.#file);
    this.#file = undefined;
  }

  /** Called before the first line: removes the files of an earlier run. */
  #start(file: number): void {
    if (this.#isStarted) return;
    this.#isStarted = true;
    const length = this.#resumed ?? 0;
    if (this.#resumed === undefined) this.#removeCheckpoints();
    this.#removeResults();
    // A device cannot be truncated.
    storing(this.#metricsPath, () => fstatSync(file).isFile() && ftruncateSync(file, length));
  }

  /** Refuses a folder in which a file of another program would be replaced. Runs write their log before any result. */
  #refuseOthers(): void {
    const place = this.#locate(this.#metricsPath);
    const log = lstatSync(place, { throwIfNoEntry: false });
    if (log?.isFile() && !mayBeMetrics(place)) refuseFile(this.#metricsPath);
    if (log) return;
    for (const name of ["summary.json", "report.html"]) {
      const path = join(this.directory, name);
      if (existsSync(this.#locate(path))) refuseFile(path);
    }
  }

  /** Checkpoints are removed first, so that none refers to a removed log: also those in folders of several runs. Other files stay. */
  #removeCheckpoints(): void {
    const { directory } = this.checkpoints;
    const place = this.#locate(directory);
    storing(directory, () => {
      if (!existsSync(place)) return;
      for (const entry of readdirSync(place, { withFileTypes: true }))
        if (entry.isDirectory() && !isOwnName(entry.name))
          removeCheckpointsIn(join(place, entry.name));
      removeCheckpointsIn(place);
    });
  }

  #removeResults(): void {
    // Results, and partial files of interrupted processes.
    const isResult = (name: string): boolean =>
      /^(summary\.json|report\.html)(\.[0-9a-f]{8}\.partial)?$/.test(name);
    for (const name of readdirSync(this.#locate(this.directory)).filter(isResult)) {
      const path = join(this.directory, name);
      storing(path, () => rmSync(this.#locate(path), { force: true }));
    }
  }

  #write(name: string, content: string): Promise<void> {
    return writeLocatedFile(join(this.directory, name), content, this.#locate);
  }
}

/** Removes checkpoints, and then their folder if nothing else is in it. */
function removeCheckpointsIn(directory: string): void {
  // One that was being replaced goes before its successor: it would be a checkpoint without it.
  for (const name of readdirSync(directory).filter(isOwnName).sort().reverse()) {
    const path = join(directory, name);
    // A process that ends in between leaves no checkpoint that looks damaged.
    const removed = name.endsWith(suffixes.removed) ? path : `${path}${suffixes.removed}`;
    if (path !== removed) renameSync(path, removed);
    rmSync(removed, { recursive: true, force: true });
  }
  if (readdirSync(directory).length === 0) rmdirSync(directory);
}

function refuseFile(path: string): never {
  throw new StorageError(
    path,
    new Error("it is of no earlier run: move it, or choose another folder"),
  );
}

/** Opens a log to append to it, without waiting for the reader of a pipe. */
const openLog = (path: string): number =>
  openSync(
    path,
    constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT | constants.O_NONBLOCK,
  );
