import { join } from "node:path";
import type { Device } from "@halfstep/device";
import type { Runtime } from "@halfstep/tensor";
import type { ReportOptions } from "../report.js";
import { resultsTable } from "../results-table.js";
import type { RunContext } from "../run-context.js";
import { RunFolder } from "../run-folder.js";
import { stopSignals } from "../stop-signals.js";
import type { RunDevice, RunSummary, Settings } from "../summary.js";
import { dumpFirstPlan } from "./dump-first-plan.js";
import { eventsOf, removeEvents } from "./events.js";
import { requireFiniteTests } from "./finite-tests.js";
import { type FollowOptions, followTraining } from "./follow-training.js";
import { openRuntime } from "./open-runtime.js";
import { flagsOf, resumePoint, savedSettings } from "./resume.js";
import type { RunFlags } from "./run-flags.js";
import { print, say } from "./say.js";

/**
 * The flags of a `train` command, and what they mean to it. Spread all flags into it, others of the program too: `summary.json` and the
 * report list them.
 */
export interface OpenRunOptions
  extends Pick<RunFlags, "seed" | "saveEvery" | "resume" | "out" | "adapter" | "device" | "json">,
    Partial<Pick<RunFlags, "dumpPlan" | "tensorboard">> {
  /** What `summary.json` calls it. */
  readonly task: string;
  /** What has to be the same when training goes on, by flag. */
  readonly settings: Settings;
}

/** How far training has to go, for whoever watches. */
export type RunProgress = Omit<FollowOptions, "folder" | "stream">;

/** What is shown of a run besides its summary. */
export interface RunResults extends ReportOptions {
  /** Lines below the table, not with `--json`. */
  readonly lines?: string | undefined;
  /** Lines for the person, whatever is printed. */
  readonly note?: string | undefined;
  /** Default true. Without, nothing is shown: of one of several runs, whose results are shown together. */
  readonly isShown?: boolean | undefined;
}

/** A `train` command from its first line to its exit code. */
export interface Run extends Disposable {
  readonly runtime: Runtime;
  /** Undefined on the CPU. */
  readonly device: Device | undefined;
  /** For people, and for `summary.json`. */
  readonly described: RunDevice;
  /** What training is given: see {@link RunContext}. Progress is shown and steps are recorded from here on. */
  follow(progress: RunProgress): RunContext;
  /**
   * Gives the device back, writes `summary.json` and `report.html`, and shows the results. Without a summary, of training that
   * was stopped, it says how to go on.
   * @returns the exit code of the program
   * @throws StorageError
   */
  finish(summary: RunSummary | undefined, results?: RunResults): Promise<number>;
}

/**
 * Opens what a `train` command needs: the run folder with its lock, the checkpoint that `--resume` asks for, the device, and
 * ears for signals. `using` closes all of it, however training ends.
 *
 * @example
 * const data = await readData(options);
 * using run = await openRun({ ...options, task: "digits", settings: settingsOf(options) });
 * say(`${data.name} · ${run.described.adapter} · writing to ${options.out}`);
 * const context = run.follow({ label: options.precision, epochs, steps, batchSize });
 * return run.finish(await trainDigits({ ...options, ...context, data }));
 *
 * @throws StorageError, CheckpointError, NoAdapterError
 */
export async function openRun(options: OpenRunOptions): Promise<Run> {
  const { task, seed, out, resume, settings, adapter, device, ...others } = options;
  const asked = { ...flagsOf(others), ...settings, seed };
  const folder = new RunFolder(out, { onNote: say });
  const stop = stopSignals();
  const ends: (() => void)[] = [stop.dispose, () => folder.close()];
  const close = (): void => {
    for (let end = ends.pop(); end; end = ends.pop()) end();
  };
  try {
    const store = folder.checkpoints;
    const checkpoint = await resumePoint({ resume, store, out, settings, onNote: say });
    const opened = await openRuntime({ adapter, device, onNote: say });
    ends.push(opened.close);
    const { runtime, described } = opened;
    return {
      ...{ runtime, described, device: opened.device },
      follow(asked) {
        const progress = followTraining({ ...asked, folder });
        ends.push(progress.stop);
        if (!checkpoint) removeEvents(out);
        const tensorBoard = options.tensorboard && eventsOf(out, asked.label, checkpoint);
        if (tensorBoard) ends.push(tensorBoard.close);
        return {
          ...{ runtime, device: opened.device, signal: stop.signal },
          hooks: {
            progress,
            ...(tensorBoard && { tensorBoard }),
            ...(options.dumpPlan && { plan: dumpFirstPlan(runtime, say) }),
          },
          checkpoints: {
            store,
            parts: { log: folder, settings: savedSettings(settings) },
            every: { steps: options.saveEvery },
            ...{ resume: checkpoint, onNote: progress.note },
          },
        };
      },
      async finish(summary, { lines, note, isShown = true, ...report } = {}) {
        // The folder is closed last, and signals until then.
        for (const end of ends.splice(2).reverse()) end();
        if (!summary) {
          if (isShown) say(`stopped; --resume auto --out ${out} goes on from here`);
          return stop.exitCode() ?? 1;
        }
        const whole = await folder.finish(
          { schema: 1, task, seed, device: described, settings: asked, runs: [summary] },
          report,
        );
        if (!isShown) return requireFiniteTests(whole, say);
        if (note !== undefined) say(note);
        const shown = [resultsTable(whole), ...(lines === undefined ? [] : [lines])];
        print(options.json ? JSON.stringify(whole, undefined, 2) : shown.join("\n"));
        say(`report: ${join(out, "report.html")}`);
        return requireFiniteTests(whole, say);
      },
      [Symbol.dispose]: close,
    };
  } catch (error) {
    close();
    throw error;
  }
}
