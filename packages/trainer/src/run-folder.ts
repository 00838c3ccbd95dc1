import {
  closeSync,
  constants,
  existsSync,
  fstatSync,
  fsyncSync,
  ftruncateSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import { CheckpointFolder, type CheckpointFolderOptions } from "./checkpoint/checkpoint-folder.js";
import { machine, versions } from "./environment.js";
import { storing } from "./errors.js";
import { makeDirectory } from "./files/make-directory.js";
import { writeWholeFile } from "./files/whole-file.js";
import { readMetrics } from "./metrics-log.js";
import { type ReportOptions, renderReport } from "./report.js";
import { RunLock } from "./run-lock.js";
import { isEvaluation, type MetricsLine, type Summary } from "./summary.js";

/** Options of a run's folder. */
export interface RunFolderOptions extends CheckpointFolderOptions {
  /** Told what a run that was killed has left behind. */
  readonly onNote?: ((line: string) => void) | undefined;
}

/** How much of a log belongs to a checkpoint. */
export interface LogState {
  readonly bytes: number;
}

/**
 * The folder of one run: `metrics.jsonl` grows with every step and evaluation, `checkpoints/` holds where it can go on from, `summary.json`
 * and `report.html` appear at the end, whole or not at all. No other run can use the folder until it is finished or closed.
 *
 * As a part of checkpoints (`parts: { model, optimizer, log: folder }`) it cuts `metrics.jsonl` to what was logged when the
 * checkpoint was saved, so that a resumed run leaves the log of one that was never stopped.
 */
export class RunFolder {
  readonly directory: string;
  readonly checkpoints: CheckpointFolder;
  readonly #metricsPath: string;
  readonly #lock: RunLock;
  #file: number | undefined;
  #isStarted = false;
  /** Bytes of the log that this run goes on with. */
  #resumed: number | undefined;

  /**
   * Makes the folder, locks it, and opens `metrics.jsonl`, so that an unwritable place shows before any training. What an
   * earlier run left there stays until the first step is recorded.
   * @throws StorageError, also where another run has the folder
   */
  constructor(directory: string, { onNote, ...options }: RunFolderOptions = {}) {
    this.directory = directory;
    this.#metricsPath = join(directory, "metrics.jsonl");
    this.checkpoints = new CheckpointFolder(join(directory, "checkpoints"), options);
    storing(directory, () => makeDirectory(directory));
    this.#lock = new RunLock(directory);
    try {
      this.#file = storing(this.#metricsPath, () => openLog(this.#metricsPath));
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
      // A disk that is nearly full takes a part of the line, and says so with the next.
      for (let at = 0; at < line.length; ) at += writeSync(file, line, at);
    });
  }

  /** How much has been logged; flushed to the disk, as a checkpoint that counts on it will be. */
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
   * Goes on with the log of the run that saved the state. Lines after it, and results, are there until the first step is recorded: what
   * is loaded after this may be broken.
   * @throws RangeError where the log is shorter than that; CheckpointError where it is no log; StorageError
   */
  loadStateDict(state: LogState): void {
    const file = this.#open();
    const bytes = state?.bytes;
    const size = storing(this.#metricsPath, () => fstatSync(file).size);
    if (!Number.isSafeInteger(bytes) || bytes < 0 || bytes > size)
      throw new RangeError(
        `${this.#metricsPath} has ${size} bytes, and had ${bytes} when the checkpoint was saved: restore it, or train anew`,
      );
    // Before hours of training, not in the report after them.
    if (bytes > 0) for (const _ of readMetrics(this.#metricsPath, bytes));
    this.#resumed = bytes;
    this.#isStarted = false;
  }

  /**
   * Writes `summary.json`, with versions and the machine, and `report.html`, which shows the program's samples and ends with its own
   * sections, and closes the folder. Returns what `summary.json` has.
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
      const metrics = [...readMetrics(this.#metricsPath)];
      await this.#write("report.html", await renderReport(whole, metrics, options));
      return whole;
    } finally {
      this.close();
    }
  }

  /** Closes `metrics.jsonl` and gives the folder free, for a run that is given up. */
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

  /** Before the first line: what another run has left behind gives way. */
  #start(file: number): void {
    if (this.#isStarted) return;
    this.#isStarted = true;
    const length = this.#resumed ?? 0;
    if (this.#resumed === undefined) this.#removeCheckpoints();
    this.#removeResults();
    // A device has no length to cut.
    storing(this.#metricsPath, () => fstatSync(file).isFile() && ftruncateSync(file, length));
  }

  #removeCheckpoints(): void {
    // Checkpoints go first and at once: none is left that counts on a log which is gone.
    const { directory } = this.checkpoints;
    const removed = `${directory}.removed`;
    storing(directory, () => {
      rmSync(removed, { recursive: true, force: true });
      if (existsSync(directory)) renameSync(directory, removed);
      rmSync(removed, { recursive: true, force: true });
    });
  }

  #removeResults(): void {
    // With what a process that was ended had begun of them.
    const isResult = (name: string): boolean => /^(summary\.json|report\.html)(\.|$)/.test(name);
    for (const name of readdirSync(this.directory).filter(isResult)) {
      const path = join(this.directory, name);
      storing(path, () => rmSync(path, { force: true }));
    }
  }

  #write(name: string, content: string): Promise<void> {
    return writeWholeFile(join(this.directory, name), content);
  }
}

/** Opens a log to append to it. Of a pipe without a reader it would wait for one. */
const openLog = (path: string): number =>
  openSync(
    path,
    constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT | constants.O_NONBLOCK,
  );
