import {
  closeSync,
  fstatSync,
  ftruncateSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import { storing } from "./errors.js";
import { makeDirectory } from "./make-directory.js";
import { renderReport } from "./report.js";
import type { StepMetrics, Summary } from "./summary.js";

/**
 * The folder of one run: `metrics.jsonl` grows with every step, `summary.json` and `report.html` appear at the end,
 * whole or not at all.
 */
export class RunFolder {
  readonly directory: string;
  readonly #metricsPath: string;
  #file: number | undefined;
  #isStarted = false;

  /**
   * Makes the folder and opens `metrics.jsonl`, so that an unwritable place shows before any training. What an earlier
   * run left there stays until the first step is recorded.
   * @throws StorageError
   */
  constructor(directory: string) {
    this.directory = directory;
    this.#metricsPath = join(directory, "metrics.jsonl");
    storing(directory, () => makeDirectory(directory));
    this.#file = storing(this.#metricsPath, () => openSync(this.#metricsPath, "a"));
  }

  /**
   * Appends a line to `metrics.jsonl`.
   * @throws StorageError; Error after `finish` or `close`
   */
  record(metrics: StepMetrics): void {
    const file = this.#file;
    if (file === undefined)
      throw new Error(`${this.#metricsPath} is closed: record steps before finish()`);
    this.#startAnew(file);
    const finite = Number.isFinite(metrics.loss) ? metrics : { ...metrics, loss: null };
    storing(this.#metricsPath, () => writeSync(file, `${JSON.stringify(finite)}\n`));
  }

  /**
   * Writes `summary.json` and `report.html`, and closes the folder.
   * @throws StorageError
   */
  async finish(summary: Summary): Promise<void> {
    if (this.#file !== undefined) this.#startAnew(this.#file);
    this.close();
    this.#writeWhole("summary.json", `${JSON.stringify(summary, undefined, 2)}\n`);
    this.#writeWhole("report.html", await renderReport(summary, readMetrics(this.#metricsPath)));
  }

  /** Closes `metrics.jsonl`, for a run that is given up. */
  close(): void {
    if (this.#file === undefined) return;
    closeSync(this.#file);
    this.#file = undefined;
  }

  #startAnew(file: number): void {
    if (this.#isStarted) return;
    this.#isStarted = true;
    for (const name of ["summary.json", "report.html"]) {
      const path = join(this.directory, name);
      storing(path, () => rmSync(path, { force: true }));
    }
    // A device has no length to cut.
    storing(this.#metricsPath, () => fstatSync(file).isFile() && ftruncateSync(file));
  }

  #writeWhole(name: string, content: string): void {
    const path = join(this.directory, name);
    storing(path, () => {
      writeFileSync(`${path}.partial`, content);
      renameSync(`${path}.partial`, path);
    });
  }
}

/** The steps of a `metrics.jsonl`. */
const readMetrics = (path: string): StepMetrics[] =>
  readFileSync(path, "utf8")
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line));
