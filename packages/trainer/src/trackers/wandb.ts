import { createRequire } from "node:module";
import { Worker } from "node:worker_threads";
import type { RunSummary, Settings } from "../summary.js";
import { type MetricsSink, recording, type TrackedRun, type Tracker } from "./metrics-sink.js";
import { failureOfPeers } from "./peer-package.js";
import { finite, type Scalars, scalarsOf, testScalars } from "./scalars.js";

/** Where a run appears at Weights & Biases. The key and the address are those of `WANDB_API_KEY` and `WANDB_BASE_URL`. */
export interface WandbOptions {
  /** Default: `WANDB_PROJECT`, or "halfstep". */
  readonly project?: string | undefined;
  /** Default: `WANDB_ENTITY`, or that of the key. */
  readonly entity?: string | undefined;
  /**
   * Milliseconds without an answer in which the rest is sent at the end. Loading the package does not count: a busy machine needs longer.
   * Default 5000.
   */
  readonly patience?: number | undefined;
}

/** What the thread is started with. */
export interface WandbThreadSetting {
  readonly project: string;
  readonly entity: string | undefined;
  readonly name: string;
  readonly config: Settings;
}

/** What the thread is asked for. */
export type WandbRequest =
  | { readonly kind: "log"; readonly scalars: Scalars; readonly step: number }
  | { readonly kind: "finish"; readonly exitCode: number };

/** What the thread says: that it has loaded the package, where the run is shown, or that it has ended. */
export type WandbAnswer =
  | { readonly kind: "loaded" }
  | { readonly kind: "begun"; readonly url: string }
  | { readonly kind: "failed"; readonly reason: string }
  | { readonly kind: "finished" };

/**
 * A tracker that logs to Weights & Biases by the package `@wandb/sdk`: settings as config, and a line of history for each step. The package
 * takes signals and ends its process where a server fails, so it runs in a thread of its own. A resumed run begins another run there.
 *
 * @throws MissingPackageError
 * @example
 * const sink = (await wandbTracker({ project: "digits" }))({ name: "float16", onNote: console.error });
 * await train({ …, hooks: { wandb: sink } });
 * await sink.close(summary);
 */
export async function wandbTracker({
  project = process.env.WANDB_PROJECT ?? "halfstep",
  entity = process.env.WANDB_ENTITY,
  patience = 5000,
}: WandbOptions = {}): Promise<Tracker> {
  try {
    createRequire(import.meta.url).resolve("@wandb/sdk");
  } catch (error) {
    throw failureOfPeers(error, "Weights & Biases needs", ["@wandb/sdk"]);
  }
  return (run): MetricsSink => {
    const tracked = new WandbRun({ project, entity }, run, patience);
    return {
      ...recording((line) => tracked.add(scalarsOf(line), line.step)),
      close: (summary) => tracked.close(summary),
    };
  };
}

/** Node 21 and later, and Deno, warn of modules that the package uses. */
const isComplaint = (line: string): boolean =>
  line.trim() !== "" && !/DeprecationWarning|^\(Use `/.test(line);

class WandbRun {
  readonly #thread: Worker;
  readonly #onNote: TrackedRun["onNote"];
  readonly #patience: number;
  #hasFailed = false;
  /** The figures of the last step. Evaluations after it belong to its line, because a step has one. */
  #line: { readonly step: number; readonly scalars: Scalars } | undefined;
  #closing: Promise<void> | undefined;
  /** While closing: ends it where the thread stays silent. */
  #timer: NodeJS.Timeout | undefined;
  #resolveEnded: () => void = () => {};
  #resolveLoaded: () => void = () => {};
  /** When the thread has loaded the package, or has failed. */
  readonly #loaded = new Promise<void>((resolve) => {
    this.#resolveLoaded = resolve;
  });
  /** When the thread has sent everything, or has failed. */
  readonly #ended = new Promise<void>((resolve) => {
    this.#resolveEnded = resolve;
  });

  constructor(
    options: Pick<WandbThreadSetting, "project" | "entity">,
    { name, settings = {}, onNote }: TrackedRun,
    patience: number,
  ) {
    this.#onNote = onNote;
    this.#patience = patience;
    const setting: WandbThreadSetting = { ...options, name, config: settings };
    this.#thread = new Worker(new URL("./wandb-thread.js", import.meta.url), {
      workerData: setting,
      // The package writes of its own accord to both.
      stdout: true,
      stderr: true,
    });
    this.#thread.stdout.resume();
    this.#thread.stderr.on("data", (text) => {
      const complaint = String(text).split("\n").find(isComplaint);
      if (complaint !== undefined) this.#fail(complaint);
    });
    this.#thread.on("error", ({ message }) => this.#end(message));
    this.#thread.on("message", (answer: WandbAnswer) => {
      this.#timer?.refresh();
      if (answer.kind === "loaded") this.#resolveLoaded();
      if (answer.kind === "failed") this.#end(answer.reason);
      if (answer.kind === "finished") this.#end();
      if (answer.kind === "begun") onNote(`Weights & Biases shows the run at ${answer.url}`);
    });
    // A program that fails need not wait for it.
    this.#thread.unref();
  }

  close(summary: RunSummary | undefined): Promise<void> {
    this.#closing ??= this.#close(summary);
    return this.#closing;
  }

  add(scalars: Scalars, step: number): void {
    if (this.#line && this.#line.step !== step) this.#send();
    this.#line = { step, scalars: { ...this.#line?.scalars, ...finite(scalars) } };
  }

  #send(): void {
    if (this.#line) this.#ask({ kind: "log", ...this.#line });
    this.#line = undefined;
  }

  #ask(request: WandbRequest): void {
    this.#thread.postMessage(request);
  }

  async #close(summary: RunSummary | undefined): Promise<void> {
    if (summary) this.add(testScalars(summary), summary.steps);
    this.#send();
    this.#thread.ref();
    this.#ask({ kind: "finish", exitCode: summary ? 0 : 1 });
    await this.#loaded;
    this.#timer = setTimeout(() => this.#end("it does not answer"), this.#patience);
    await this.#ended;
    clearTimeout(this.#timer);
    await this.#thread.terminate();
  }

  #end(failure?: string): void {
    if (failure !== undefined) this.#fail(failure);
    this.#resolveLoaded();
    this.#resolveEnded();
  }

  #fail(reason: string): void {
    if (!this.#hasFailed)
      this.#onNote(
        `Weights & Biases cannot be logged to (${reason.trim().split("\n", 1)[0]}): training goes on`,
      );
    this.#hasFailed = true;
  }
}
