import { realpathSync } from "node:fs";
import type { Checkpoint } from "../checkpoint/checkpoint.js";
import { CheckpointError } from "../checkpoint/checkpoint-error.js";
import type { CheckpointFolder } from "../checkpoint/checkpoint-folder.js";
import { readCheckpoint } from "../checkpoint/read-checkpoint.js";
import { type Stateful, savedData } from "../stateful.js";
import type { Settings, SettingValue } from "../summary.js";

type Flag<Options> = {
  readonly [Name in keyof Options]: Options[Name] extends SettingValue | undefined ? Name : never;
}[keyof Options] &
  string;

/**
 * Settings from some options, by their flags; missing ones are null.
 *
 * @example
 * settingsOf(options, ["lr", "batchSize", "staticLossScale"]); // { lr: 0.1, "batch-size": 128, "static-loss-scale": null }
 */
export const settingsOf = <Options extends object>(
  options: Options,
  names: readonly Flag<Options>[],
): Settings =>
  Object.fromEntries(
    names.map((name) => [flagOf(name), (options[name] as SettingValue | undefined) ?? null]),
  );

/**
 * All flags in options, for `summary.json`: strings, numbers, booleans, and lists of these.
 *
 * @example
 * flagsOf({ batchSize: 128, betas: [0.9, 0.99], data }); // { "batch-size": 128, betas: [0.9, 0.99] }
 */
export const flagsOf = (options: object): Settings =>
  Object.fromEntries(
    Object.entries(options).flatMap(([name, value]) =>
      isPlain(value) || (Array.isArray(value) && value.every(isPlain))
        ? [[flagOf(name), value]]
        : [],
    ),
  );

const isPlain = (value: unknown): boolean => ["string", "number", "boolean"].includes(typeof value);

const flagOf = (name: string): string =>
  name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);

/** Options of resuming a run. */
export interface ResumeOptions {
  /** The flag `--resume`: "auto", or the folder of a checkpoint. Undefined: training begins. */
  readonly resume: string | undefined;
  /** The stores of checkpoints to search, in the order in which they are written. */
  readonly store: CheckpointFolder | readonly CheckpointFolder[];
  /** The folder in messages. Default: that of the store. */
  readonly out?: string;
  /** Settings that must equal those saved by {@link savedSettings}. Default: no comparison. */
  readonly settings?: Settings | undefined;
  /** Facts of the data that must equal those saved, such as the names of classes, by the words for them. Default: no comparison. */
  readonly dataFacts?: Settings | undefined;
  readonly onNote: (line: string) => void;
}

/**
 * The checkpoint of `--resume`, reported in a line; undefined where training begins. With "auto" it is the newest whole one
 * of the last store that has any.
 * @throws CheckpointError where there is no whole one, or it was saved with other settings or of other data
 */
export async function resumePoint(options: ResumeOptions): Promise<Checkpoint | undefined> {
  const { resume, settings, dataFacts, onNote } = options;
  const stores = "directory" in options.store ? [options.store] : options.store;
  if (resume === undefined) {
    const lists = await Promise.all(stores.map((store) => store.list()));
    const last = lists.flatMap(([first]) => first ?? []).at(-1);
    if (last)
      onNote(`${last} is of a run that this one replaces; --resume auto would go on from it`);
    return undefined;
  }
  const checkpoint =
    resume === "auto" ? await newestOf(stores, onNote) : await readCheckpoint(resume);
  const longer = checkpoint && settings ? requireSettings(checkpoint, settings) : [];
  if (checkpoint && dataFacts) requireFacts(checkpoint, dataFacts);
  onNote(
    checkpoint
      ? `going on from ${checkpoint.path}, after step ${checkpoint.step}`
      : `${options.out ?? stores[0]?.directory} has no checkpoint to go on from: training starts from the beginning`,
  );
  if (longer.length > 0)
    onNote(
      `longer than it was: ${longer.join(", ")}; a learning rate that follows the length of training goes on where the longer schedule is by now`,
    );
  return checkpoint;
}

async function newestOf(
  stores: readonly CheckpointFolder[],
  onNote: (line: string) => void,
): Promise<Checkpoint | undefined> {
  let failure: CheckpointError | undefined;
  for (const store of [...stores].reverse())
    try {
      const { checkpoint, skipped } = await store.newest();
      for (const { message } of skipped) onNote(`a checkpoint is passed over: ${message}`);
      if (checkpoint) return checkpoint;
    } catch (error) {
      if (!(error instanceof CheckpointError)) throw error;
      onNote(error.message);
      failure ??= error;
    }
  if (failure) throw failure;
  return undefined;
}

/**
 * Settings as a part of checkpoints, under the name `settings`. Resuming reads them before a run exists.
 *
 * @example
 * parts: { model, optimizer, log: folder, settings: savedSettings(settings) }
 */
export const savedSettings = (settings: Settings): Stateful => savedData(settings);

/**
 * A flag with which a checkpoint was saved; undefined where it was left out, and where the checkpoint has no settings.
 *
 * @example
 * savedSetting(await checkpointIn("runs/mine"), "data"); // "photos"
 */
export function savedSetting({ parts }: Checkpoint, flag: string): SettingValue | undefined {
  const saved = parts.settings as Settings | null | undefined;
  return saved?.[flag] ?? undefined;
}

/**
 * Compares the settings of a checkpoint with those of the resumed run. The length of training (`epochs` and `max-steps`)
 * may increase.
 * @returns the flags that lengthen training, as text: "--epochs 3 in place of 2"
 * @throws CheckpointError that names the first flag that differs
 */
export function requireSettings(
  { path, parts }: Checkpoint,
  settings: Settings,
): readonly string[] {
  const saved = parts.settings as Settings | undefined;
  if (typeof saved !== "object" || saved === null)
    throw new CheckpointError("misfit", path, "was not saved by this program");
  const longer: string[] = [];
  for (const [name, value] of Object.entries(settings)) {
    // Compares JSON, because settings may be lists and the saved value may be any JSON.
    if (JSON.stringify(saved[name] ?? null) === JSON.stringify(value)) continue;
    if (isSamePlace(saved[name], value)) continue;
    const isLength = lengths.has(name);
    if (isLength && lengthOf(value) > lengthOf(saved[name])) {
      longer.push(`--${name} ${shown(value)} in place of ${shown(saved[name])}`);
      continue;
    }
    throw new CheckpointError(
      "misfit",
      path,
      `was saved with --${name} ${shown(saved[name])}, not ${shown(value)}: go on with the same flags${isLength ? ", or a larger one to train longer" : ""}`,
    );
  }
  return longer;
}

/**
 * Compares the facts of the data: the same numbers of a model mean other classes or words otherwise.
 * @throws CheckpointError that names the first fact that differs
 */
function requireFacts({ path, parts }: Checkpoint, facts: Settings): void {
  const saved = (parts.dataFacts ?? {}) as Settings;
  for (const [name, value] of Object.entries(facts))
    if (JSON.stringify(saved[name]) !== JSON.stringify(value))
      throw new CheckpointError(
        "misfit",
        path,
        `was saved with data that has ${name} ${shown(saved[name])}, not ${shown(value)}: restore the data, or train anew without --resume`,
      );
}

/** Whether two settings are paths to the same file or folder. */
function isSamePlace(saved: SettingValue | undefined, value: SettingValue): boolean {
  if (typeof saved !== "string" || typeof value !== "string") return false;
  try {
    return realpathSync(saved) === realpathSync(value);
  } catch {
    return false;
  }
}

/** A setting in the form of the command line. */
function shown(value: unknown): string {
  if (value === undefined || value === null) return "left out";
  if (Array.isArray(value)) return cut(value.map(shown).join());
  return cut(typeof value === "string" ? value : JSON.stringify(value));
}

const cut = (text: string): string =>
  text.length > longestShown ? `${text.slice(0, longestShown)}…` : text;

const longestShown = 80;

const lengths: ReadonlySet<string> = new Set(["epochs", "max-steps"]);

/** Without a limit, the length is infinite. */
const lengthOf = (value: SettingValue | undefined): number =>
  typeof value === "number" ? value : Number.POSITIVE_INFINITY;
