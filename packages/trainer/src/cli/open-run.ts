import { join } from "node:path";
import type { Device } from "@halfstep/device";
import type { Runtime } from "@halfstep/tensor";
import type { Checkpoint } from "../checkpoint/checkpoint.js";
import { CheckpointFolder } from "../checkpoint/checkpoint-folder.js";
import { readingOnly } from "../checkpoint/reading-only.js";
import type { ReportOptions } from "../report/render-report.js";
import { resultsTable } from "../results-table.js";
import type { RunContext } from "../run-context.js";
import { RunFolder } from "../run-folder.js";
import { savedData } from "../stateful.js";
import { stopSignals } from "../stop-signals.js";
import type { RunDevice, RunSummary, Settings } from "../summary.js";
import { dumpFirstPlan } from "./dump-first-plan.js";
import { eventsOf, removeEvents } from "./events.js";
import { type FollowOptions, followTraining } from "./follow-training.js";
import { isFirstRank, type Job, joinJob, noteInterrupted, requireEqualParameters } from "./job.js";
import { openRuntime } from "./open-runtime.js";
import { reportOutcome } from "./report-outcome.js";
import { flagsOf, resumePoint, savedSettings } from "./resume.js";
import type { RunFlags } from "./run-flags.js";
import { print, say } from "./say.js";
import { openTrackers, type TrackedTraining, track } from "./trackers.js";

/** The flags of a `train` command. Spread all flags of the program into it: `summary.json` and the report list them. */
export interface OpenRunOptions
  extends Pick<RunFlags, "seed" | "saveEvery" | "resume" | "out" | "adapter" | "device" | "json">,
    Partial<Pick<RunFlags, "dumpPlan" | "tensorboard" | "distributed" | "deadline">>,
    Partial<Pick<RunFlags, "wandb" | "mlflow" | "otel">> {
  /** The name of the task in `summary.json`. */
  readonly task: string;
  /** Settings that must be the same in a resumed run, by flag. */
  readonly settings: Settings;
  /**
   * Facts of the data that must be the same in a resumed run, by the words for them: `{ classes: ["cat", "dog"], examples: 60000 }`.
   * Default: none.
   */
  readonly dataFacts?: Settings | undefined;
}

/** The size of training, for the display of progress. */
export type RunProgress = Omit<FollowOptions, "folder" | "stream">;

/** Results of a run to show besides its summary. */
export interface RunResults extends ReportOptions {
  /** Lines below the table, not with `--json`. */
  readonly lines?: string | undefined;
  /** Lines on stderr, in every mode. */
  readonly note?: string | undefined;
  /** False shows nothing, for one of several runs whose results are shown together. Default true. */
  readonly isShown?: boolean | undefined;
}

/** A `train` command from its first line to its exit code. */
export interface Run extends Disposable {
  readonly runtime: Runtime;
  /** Undefined on the CPU. */
  readonly device: Device | undefined;
  /** The device, for people and for `summary.json`. */
  readonly described: RunDevice;
  /** The processes that train together. */
  readonly job: Job;
  /** Begins to show progress and to record steps. Returns the context for training: see {@link RunContext}. */
  follow(progress: RunProgress): RunContext;
  /**
   * Releases the device, writes `summary.json` and `report.html`, and shows the results. Without a summary (training was
   * stopped), it says how to resume.
   * @returns the exit code of the program
   * @throws StorageError
   */
  finish(summary: RunSummary | undefined, results?: RunResults): Promise<number>;
}

/** The ranks whose batches made one global batch, in a run that is resumed. */
function ranksOf(checkpoint: Checkpoint | undefined): number | undefined {
  const { ranks } = (checkpoint?.parts.settings ?? {}) as { readonly ranks?: unknown };
  return typeof ranks === "number" && Number.isSafeInteger(ranks) && ranks > 0 ? ranks : undefined;
}

/**
 * Opens the resources of a `train` command: the run folder with its lock, the checkpoint of `--resume`, the device, and
 * signal handlers. `using` closes all of them, even if training fails.
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
  const { task, seed, out, resume, settings, dataFacts = {}, adapter, device, ...others } = options;
  const flags = { ...flagsOf(others), ...settings, seed };
  const trackers = isFirstRank ? await openTrackers(options) : {};
  const carrier = await joinJob(options.distributed ?? false, options.deadline);
  const folder = isFirstRank ? new RunFolder(out, { onNote: say }) : undefined;
  const stop = stopSignals();
  // Of every rank, unlike other lines.
  if (carrier) noteInterrupted(carrier, stop.signal, (line) => process.stderr.write(`${line}\n`));
  let tracked: TrackedTraining | undefined;
  const ends: (() => void)[] = [stop.dispose, () => folder?.close()];
  const close = (): void => {
    for (let end = ends.pop(); end; end = ends.pop()) end();
  };
  try {
    const store = folder?.checkpoints ?? new CheckpointFolder(join(out, "checkpoints"));
    const checkpoint = await resumePoint({ resume, store, out, settings, dataFacts, onNote: say });
    const opened = await openRuntime({ adapter, device, onNote: say });
    ends.push(opened.close);
    const { runtime, described } = opened;
    const { rank, size } = carrier ?? { rank: 0, size: 1 };
    const job = { carrier, rank, size, ranks: ranksOf(checkpoint) ?? size };
    return {
      ...{ runtime, described, job, device: opened.device },
      follow(asked) {
        const common = { runtime, device: opened.device, signal: stop.signal, job };
        const parts = {
          settings: savedSettings({ ...settings, ranks: job.ranks }),
          dataFacts: savedData(dataFacts),
        };
        if (!folder)
          return {
            ...common,
            // Rank 0 saves for all, which may have parts of the state.
            checkpoints: {
              every: { steps: options.saveEvery },
              store: readingOnly(store),
              parts: { log: savedData(null), ...parts },
              resume: checkpoint,
            },
          };
        const progress = followTraining({ ...asked, folder });
        ends.push(progress.stop);
        if (!checkpoint) removeEvents(out);
        const tensorBoard = options.tensorboard && eventsOf(out, asked.label, checkpoint);
        if (tensorBoard) ends.push(tensorBoard.close);
        const name = `${task} ${asked.label.trim()}`;
        tracked = track(trackers, { name, settings: flags, onNote: progress.note }, checkpoint);
        // Where training fails.
        ends.push(() => void tracked?.close());
        return {
          ...common,
          hooks: {
            progress,
            ...(tensorBoard && { tensorBoard }),
            ...tracked.hooks,
            ...(options.dumpPlan && { plan: dumpFirstPlan(runtime, say) }),
          },
          checkpoints: {
            store,
            parts: { log: folder, ...parts },
            every: { steps: options.saveEvery },
            ...{ resume: checkpoint, onNote: progress.note },
          },
        };
      },
      async finish(summary, { lines, note, isShown = true, ...report } = {}) {
        await tracked?.close(summary);
        // Closes the folder last; signals are handled until then.
        for (const end of ends.splice(2).reverse()) end();
        if (!summary) {
          if (isShown) say(`stopped; --resume auto --out ${out} goes on from here`);
          return stop.exitCode() ?? 1;
        }
        if (carrier) {
          await requireEqualParameters(carrier, summary.parameterSha256);
          await carrier.close();
        }
        if (!folder) return 0;
        const whole = await folder.finish(
          { schema: 1, task, seed, device: described, settings: flags, runs: [summary] },
          report,
        );
        if (!isShown) return reportOutcome(whole, say);
        if (note !== undefined) say(note);
        const shown = [resultsTable(whole), ...(lines === undefined ? [] : [lines])];
        print(options.json ? JSON.stringify(whole, undefined, 2) : shown.join("\n"));
        say(`report: ${join(out, "report.html")}`);
        return reportOutcome(whole, say);
      },
      [Symbol.dispose]: close,
    };
  } catch (error) {
    close();
    throw error;
  }
}
