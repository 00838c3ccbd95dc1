import { StorageError } from "../errors.js";
import { requireKinds, said } from "../option-kinds.js";
import { sha256OfBytes } from "../sha256.js";
import type {
  Checkpoint,
  CheckpointContent,
  CheckpointStore,
  NewestCheckpoint,
} from "./checkpoint.js";
import { CheckpointError } from "./checkpoint-error.js";
import { isAfter, nameOf, placeOf } from "./checkpoint-name.js";
import { packCheckpoint, unpackCheckpoint } from "./packed-checkpoint.js";
import { Turns } from "./turns.js";

/** Files by name. Each appears whole or not at all. */
export interface FileStorage {
  list(): Promise<readonly string[]>;
  /** The bytes of a file that `list` named. The caller may write into them. */
  read(name: string): Promise<Uint8Array<ArrayBuffer>>;
  /** Replaces a file of the name. Resolves when the file is durable. */
  write(name: string, bytes: Uint8Array<ArrayBuffer>): Promise<void>;
  remove(name: string): Promise<void>;
}

/** Options of a store of checkpoints. */
export interface CheckpointArchiveOptions {
  /** Number of newest checkpoints to keep, besides the best. Default 3. */
  readonly keep?: number;
}

/** A checkpoint in the storage. */
interface Entry {
  readonly name: string;
  readonly step: number;
  readonly microStep: number;
  readonly best: boolean;
  readonly sha256: string;
}

/**
 * Checkpoints as one file each: `step-00000120.HASH.safetensors`, or `step-00000120.best.HASH.safetensors`. One page or worker at a time
 * may save to it. A failed write throws a StorageError and does not change earlier checkpoints.
 */
export class CheckpointArchive implements CheckpointStore {
  readonly #place: string;
  readonly #files: FileStorage;
  readonly #keep: number;
  readonly #turns: Turns = new Turns();

  /** @internal Use `memoryCheckpoints()`, or `opfsCheckpoints()` and `indexedDbCheckpoints()` of `@halfstep/trainer/browser`. */
  constructor(place: string, files: FileStorage, options: CheckpointArchiveOptions = {}) {
    requireKinds("a store of checkpoints", options, { keep: "any" });
    const { keep = 3 } = options;
    if (!(Number.isSafeInteger(keep) && keep >= 1))
      throw new RangeError(`keep is ${said(keep)}: it must be a whole number from 1 on`);
    this.#place = place;
    this.#files = files;
    this.#keep = keep;
  }

  /**
   * Saves a checkpoint, and removes those that rotation no longer keeps. It replaces one of the same step, which is removed when the new one
   * is durable. Only a whole one with the same state stays, and then it stays the best if it was. Checkpoints of later steps belong to an
   * abandoned continuation or are damaged, and are removed. Two saves at once are done one after the other.
   * @throws StorageError; TypeError where a state cannot be saved
   */
  async save(content: CheckpointContent): Promise<void> {
    const bytes = packCheckpoint(content);
    return this.#turns.take(async () => {
      const sha256 = await sha256OfBytes(bytes);
      const before = await this.#entries();
      const same = before.filter((entry) => nameOf(entry) === nameOf(content));
      const kept = await this.#sameState(same, content, sha256);
      const best = content.best ? ".best" : "";
      const name = kept?.name ?? `${nameOf(content)}${best}.${sha256}.safetensors`;
      if (!kept) await this.#storing(name, () => this.#files.write(name, bytes));
      for (const replaced of same) if (replaced.name !== name) await this.#remove(replaced);
      for (const entry of before) if (isAfter(entry, content)) await this.#remove(entry);
      await this.#rotate();
    });
  }

  /**
   * The newest whole checkpoint, and the errors of newer ones.
   * @throws CheckpointError where there are checkpoints and none is whole
   */
  newest(): Promise<NewestCheckpoint> {
    return this.#turns.take(() => this.#newest());
  }

  /** The newest checkpoint that was marked as the best, if it is whole. */
  best(): Promise<Checkpoint | undefined> {
    return this.#turns.take(async () => {
      const entry = (await this.#entries()).find(({ best }) => best);
      return entry && this.#read(entry);
    });
  }

  /** Removes all checkpoints. */
  clear(): Promise<void> {
    return this.#turns.take(async () => {
      for (const entry of await this.#entries()) await this.#remove(entry);
    });
  }

  async #newest(): Promise<NewestCheckpoint> {
    const skipped: CheckpointError[] = [];
    for (const entry of await this.#entries())
      try {
        return { checkpoint: await this.#read(entry), skipped };
      } catch (error) {
        if (!(error instanceof CheckpointError)) throw error;
        skipped.push(error);
      }
    const [first] = skipped;
    if (first)
      throw new CheckpointError(
        "not-found",
        this.#place,
        `has ${skipped.length} checkpoints and none that is whole: clear() it, and train anew`,
        first,
      );
    return { checkpoint: undefined, skipped };
  }

  /** The entry that is whole and has the bytes of a content, or those that it would have as the best. */
  async #sameState(
    entries: readonly Entry[],
    content: CheckpointContent,
    sha256: string,
  ): Promise<Entry | undefined> {
    for (const entry of entries) {
      const isMarked = entry.best && !content.best;
      const wanted = isMarked
        ? await sha256OfBytes(packCheckpoint({ ...content, best: true }))
        : sha256;
      if (entry.sha256 === wanted && (await this.#isWhole(entry))) return entry;
    }
    return undefined;
  }

  async #rotate(): Promise<void> {
    const all = await this.#entries();
    const best = all.find((entry) => entry.best);
    for (const entry of all.slice(this.#keep)) if (entry !== best) await this.#remove(entry);
  }

  /** The newest first. */
  async #entries(): Promise<readonly Entry[]> {
    const names = await this.#reading(this.#place, () => this.#files.list());
    return names.flatMap((name) => entryOf(name) ?? []).sort((a, b) => (isAfter(a, b) ? -1 : 1));
  }

  async #read({ name, sha256 }: Entry): Promise<Checkpoint> {
    const path = `${this.#place}/${name}`;
    const bytes = await this.#reading(path, () => this.#files.read(name));
    if ((await sha256OfBytes(bytes)) !== sha256)
      throw new CheckpointError("hash", path, "has other bytes than were saved");
    return unpackCheckpoint(bytes, path);
  }

  #isWhole(entry: Entry): Promise<boolean> {
    return this.#read(entry).then(
      () => true,
      () => false,
    );
  }

  #remove({ name }: Entry): Promise<void> {
    return this.#storing(name, () => this.#files.remove(name));
  }

  async #reading<T>(path: string, work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      throw new StorageError(path, error, "read");
    }
  }

  async #storing(name: string, work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      throw new StorageError(`${this.#place}/${name}`, error);
    }
  }
}

function entryOf(name: string): Entry | undefined {
  const match = /^([^.]+)(\.best)?\.([0-9a-f]{64})\.safetensors$/.exec(name);
  const place = match && placeOf(match[1] as string);
  return place
    ? { name, ...place, best: match[2] !== undefined, sha256: match[3] as string }
    : undefined;
}
