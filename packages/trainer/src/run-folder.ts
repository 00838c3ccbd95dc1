import {
  closeSync,
  existsSync,
  fstatSync,
  fsyncSync,
  ftruncateSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import { CheckpointError } from "./checkpoint/checkpoint-error.js";
import { CheckpointFolder, type CheckpointFolderOptions } from "./checkpoint/checkpoint-folder.js";
import { machine, versions } from "./environment.js";
import { storing } from "./errors.js";
import { makeDirectory } from "./files/make-directory.js";
import { writeWholeFile } from "./files/whole-file.js";
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
      this.#file = storing(this.#metricsPath, () => openSync(this.#metricsPath, "a"));
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
    this.#startAnew(file);
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
    this.#startAnew(file);
    return storing(this.#metricsPath, () => {
      const stats = fstatSync(file);
      if (!stats.isFile()) return { bytes: 0 };
      fsyncSync(file);
      return { bytes: stats.size };
    });
  }

  /**
   * Goes on with the log of the run that saved the state: lines after it are cut off.
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
    if (bytes > 0) readMetrics(this.#metricsPath, bytes);
    this.#removeResults();
    storing(this.#metricsPath, () => ftruncateSync(file, bytes));
    this.#isStarted = true;
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
    if (this.#file !== undefined) this.#startAnew(this.#file);
    this.#closeLog();
    const { runs, ...head } = summary;
    const whole = { ...head, versions: versions(), machine: machine(), runs };
    try {
      await this.#write("summary.json", `${JSON.stringify(whole, undefined, 2)}\n`);
      const metrics = readMetrics(this.#metricsPath);
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

  #startAnew(file: number): void {
    if (this.#isStarted) return;
    this.#isStarted = true;
    // Checkpoints go first and at once: none is left that counts on a log which is gone.
    const { directory } = this.checkpoints;
    const removed = `${directory}.removed`;
    storing(directory, () => {
      rmSync(removed, { recursive: true, force: true });
      if (existsSync(directory)) renameSync(directory, removed);
      rmSync(removed, { recursive: true, force: true });
    });
    this.#removeResults();
    // A device has no length to cut.
    storing(this.#metricsPath, () => fstatSync(file).isFile() && ftruncateSync(file));
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

/**
 * The lines of a `metrics.jsonl`.
 * @throws CheckpointError where one is not what `record` writes
 */
const readMetrics = (path: string, bytes?: number): MetricsLine[] =>
  readFileSync(path)
    .subarray(0, bytes)
    .toString("utf8")
    .split("\n")
    .flatMap((text, i) => (text === "" ? [] : [metricsLine(text, path, i + 1)]));

function metricsLine(text: string, path: string, number: number): MetricsLine {
  let line: unknown;
  try {
    line = JSON.parse(text);
  } catch {
    // Below.
  }
  if (isMetricsLine(line)) return line;
  throw new CheckpointError(
    "malformed",
    path,
    `has no step or evaluation in line ${number}: restore it, or train anew into another folder`,
  );
}

/** Whether a report can be made of it. */
function isMetricsLine(value: unknown): value is MetricsLine {
  if (typeof value !== "object" || value === null) return false;
  const line = value as Readonly<Record<string, unknown>>;
  const isCount = (name: string): boolean => Number.isSafeInteger(line[name]);
  const isNumber = (of: unknown): boolean => of === null || typeof of === "number";
  if (typeof line.precision !== "string" || !isCount("step") || !isCount("epoch")) return false;
  if (!("kind" in line))
    return [line.loss, line.scale, line.lr].every(isNumber) && typeof line.applied === "boolean";
  const { kind, values } = line;
  if (kind !== "evaluation" || typeof values !== "object" || values === null) return false;
  return Object.values(values).every(isNumber);
}
