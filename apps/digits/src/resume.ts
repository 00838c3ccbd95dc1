import { join } from "node:path";
import {
  type Checkpoint,
  CheckpointError,
  type RunSummary,
  type Stateful,
} from "@halfstep/trainer";
import { CheckpointFolder, readCheckpoint } from "@halfstep/trainer/node";
import type { DigitsOptions } from "./options.js";

/** What has to be the same when training goes on, by the flags that say it. */
export type Settings = Readonly<Record<string, unknown>>;

export const settingsOf = (options: DigitsOptions, images: number): Settings => ({
  precision: options.precision.join(),
  epochs: options.epochs,
  "batch-size": options.batchSize,
  lr: options.lr,
  seed: options.seed,
  "static-loss-scale": options.staticLossScale ?? null,
  "init-scale": options.initScale,
  limit: images,
});

/** What checkpoints hold of the runs as a whole. */
interface RunsState {
  readonly settings: Settings;
  /** Of the precisions that are done. */
  readonly done: readonly RunSummary[];
}

/** The runs as a part of checkpoints. What is resumed reads them before there is a run. */
export const savedRuns = (settings: Settings, done: readonly RunSummary[]): Stateful => ({
  stateDict: (): RunsState => ({ settings, done: [...done] }),
  loadStateDict: () => {},
});

/** Where the checkpoints of one precision are. */
export const checkpointsOf = (out: string, precision: string): CheckpointFolder =>
  new CheckpointFolder(join(out, "checkpoints", precision));

/**
 * The checkpoint that `--resume` asks for: with "auto" that of the last precision that has one. Undefined where there is none.
 * @throws CheckpointError
 */
export async function checkpointFor(
  { resume, out, precision }: DigitsOptions,
  say: (line: string) => void,
): Promise<Checkpoint | undefined> {
  if (resume === undefined) {
    const lists = await Promise.all(precision.map((name) => checkpointsOf(out, name).list()));
    const last = lists.flatMap(([first]) => first ?? []).at(-1);
    if (last) say(`${last} is of a run that this one replaces; --resume auto would go on from it`);
    return undefined;
  }
  const checkpoint =
    resume === "auto" ? await newest(out, precision, say) : await readCheckpoint(resume);
  say(
    checkpoint
      ? `going on from ${checkpoint.path}, after step ${checkpoint.step}`
      : `${out} has no checkpoint to go on from: training starts from the beginning`,
  );
  return checkpoint;
}

async function newest(
  out: string,
  precisions: readonly string[],
  say: (line: string) => void,
): Promise<Checkpoint | undefined> {
  let failure: CheckpointError | undefined;
  for (const precision of [...precisions].reverse())
    try {
      const { checkpoint, skipped } = await checkpointsOf(out, precision).newest();
      for (const { message } of skipped) say(`a checkpoint is passed over: ${message}`);
      if (checkpoint) return checkpoint;
    } catch (error) {
      if (!(error instanceof CheckpointError)) throw error;
      say(error.message);
      failure ??= error;
    }
  if (failure) throw failure;
  return undefined;
}

/**
 * The summaries of the precisions that were done when a checkpoint was saved.
 * @throws CheckpointError where it was saved with other flags
 */
export function runsDone({ path, parts }: Checkpoint, settings: Settings): readonly RunSummary[] {
  const { settings: saved, done } = (parts.runs ?? {}) as Partial<RunsState>;
  if (!saved || !done) throw new CheckpointError("misfit", path, "was not saved by this program");
  const different = Object.keys(settings).find((name) => saved[name] !== settings[name]);
  if (different !== undefined)
    throw new CheckpointError(
      "misfit",
      path,
      `was saved with --${different} ${saved[different] ?? "left out"}, not ${settings[different] ?? "left out"}: go on with the same flags`,
    );
  return done;
}
