import { type CheckpointArchive, memoryCheckpoints, StorageError } from "@halfstep/trainer";
import { opfsCheckpoints } from "@halfstep/trainer/browser";
import type { SavedLane } from "./lane.js";
import type { SetupId } from "./setups.js";

/** The lanes of a run as they were after a step. */
export interface SavedState {
  readonly step: number;
  readonly lanes: Readonly<Partial<Record<SetupId, SavedLane>>>;
}

const name = "playground";
/** Milliseconds until another page that trains keeps the files. A page that is loaded again has to wait for its own end. */
const patience = 1500;

/** The newest state of the page's run, from which it goes on after a reload or a loss of the GPU. */
export class SavedRun {
  #archive: CheckpointArchive | undefined;

  private constructor(archive: CheckpointArchive | undefined) {
    this.#archive = archive;
  }

  /**
   * In the files of the origin, or in memory where there are none or another page has them: then only until a reload. Private windows of
   * Firefox have no files. Nowhere on pages without https: they have no files, no checksums, and no GPU that could be lost.
   */
  static async open(): Promise<SavedRun> {
    if (globalThis.crypto.subtle === undefined) return new SavedRun(undefined);
    const hasFiles = (await mayHaveFiles()) && (await isAlone());
    return new SavedRun(
      hasFiles ? opfsCheckpoints(name, { keep: 1 }) : memoryCheckpoints({ keep: 1 }),
    );
  }

  /** The state of a run, if that is what was saved last. */
  async find(run: string): Promise<SavedState | undefined> {
    const newest = await this.#archive?.newest().catch(() => undefined);
    const checkpoint = newest?.checkpoint;
    if (checkpoint?.parts.run !== run) return undefined;
    return { step: checkpoint.step, lanes: checkpoint.parts.lanes as SavedState["lanes"] };
  }

  async save(run: string, { step, lanes }: SavedState): Promise<void> {
    const checkpoint = { step, microStep: 0, best: false, parts: { run, lanes } };
    try {
      await this.#archive?.save(checkpoint);
    } catch (error) {
      if (!(error instanceof StorageError)) throw error;
      // Where the browser has no more room, training goes on without files.
      this.#archive = memoryCheckpoints({ keep: 1 });
      await this.#archive.save(checkpoint);
    }
  }

  /** Forgets the run, before another one. */
  async clear(): Promise<void> {
    await this.#archive?.clear();
  }
}

/** Whether the browser lets this page have files. */
async function mayHaveFiles(): Promise<boolean> {
  try {
    await navigator.storage.getDirectory();
    return true;
  } catch {
    return false;
  }
}

/** Whether no other page trains. Holds a lock for as long as the worker lives. */
async function isAlone(): Promise<boolean> {
  return new Promise((resolve) => {
    const forever = (): Promise<never> => {
      resolve(true);
      return new Promise(() => {});
    };
    navigator.locks
      .request(name, { signal: AbortSignal.timeout(patience) }, forever)
      .catch(() => resolve(false));
  });
}
