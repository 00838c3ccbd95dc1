import { existsSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { StorageError, storing, storingAsync } from "../errors.js";
import {
  type FileSystem,
  filling,
  nodeFileSystem,
  syncDirectory,
  writeNewFile,
} from "../files/file-system.js";
import { makeDirectory } from "../files/make-directory.js";
import { requireKinds } from "../option-kinds.js";
import type {
  Checkpoint,
  CheckpointContent,
  CheckpointStore,
  NewestCheckpoint,
} from "./checkpoint.js";
import { CheckpointError } from "./checkpoint-error.js";
import {
  isAfter,
  isUnfinished,
  nameOf,
  placeOf as placeOfName,
  suffixes,
} from "./checkpoint-name.js";
import { formatManifest, manifestName } from "./manifest.js";
import { readCheckpoint, readManifest } from "./read-checkpoint.js";
import { prepareCheckpoint } from "./write-checkpoint.js";

/** Options of a folder of checkpoints. */
export interface CheckpointFolderOptions {
  /** Number of newest checkpoints to keep, besides the best. Default 3. */
  readonly keep?: number;
  /** Default: that of Node. */
  readonly fileSystem?: FileSystem;
}

/**
 * A folder of checkpoints, one folder each: `step-00000120`, or `step-00000120-micro-0003` in the middle of an accumulation.
 * A checkpoint appears whole or not at all: it is written under another name, flushed to the disk file by file, its manifest
 * last, and then renamed. A failed write throws a StorageError and does not change earlier checkpoints.
 *
 * One process at a time may save to it; a `RunFolder` ensures that with its lock.
 */
export class CheckpointFolder implements CheckpointStore {
  readonly directory: string;
  readonly #keep: number;
  readonly #fs: FileSystem;

  /** @throws RangeError unless `keep` is a whole number from 1 on */
  constructor(directory: string, options: CheckpointFolderOptions = {}) {
    requireKinds("new CheckpointFolder()", options, { keep: "any", fileSystem: "any" });
    const { keep = 3, fileSystem = nodeFileSystem } = options;
    if (!(Number.isSafeInteger(keep) && keep >= 1))
      throw new RangeError(`keep is ${keep}: it must be a whole number from 1 on`);
    this.directory = directory;
    this.#keep = keep;
    this.#fs = fileSystem;
  }

  /**
   * Saves a checkpoint, and removes those that rotation no longer keeps. An existing whole checkpoint of the same step
   * stays, and is marked if this one is the best. Checkpoints of later steps belong to an abandoned continuation or are damaged, and are removed first.
   * @throws StorageError; TypeError where a state cannot be saved
   */
  async save(content: CheckpointContent): Promise<void> {
    const write = prepareCheckpoint(content);
    await this.#prepare();
    const path = join(this.directory, nameOf(content));
    const partial = `${path}${suffixes.partial}`;
    try {
      await storingAsync(partial, () => this.#fs.mkdir(partial));
      await write(this.#fs, partial);
      for (const other of await this.list()) {
        if (isNewer(other, path)) await this.#discard(other);
        if (other !== path) continue;
        if (await isWhole(path)) {
          if (content.best) await this.#markBest(path);
          return await this.#remove(partial);
        }
        await this.#discard(path);
      }
      await storingAsync(path, () => this.#fs.rename(partial, path));
    } catch (error) {
      // Free the space of the partial checkpoint: the disk may be full.
      await this.#fs.rm(partial, { recursive: true, force: true }).catch(() => {});
      throw error;
    }
    await this.#sync(this.directory);
    await this.#rotate();
  }

  /**
   * The newest whole checkpoint, and the errors of newer ones.
   * @throws CheckpointError where there are checkpoints and none is whole
   */
  async newest(): Promise<NewestCheckpoint> {
    const skipped: CheckpointError[] = [];
    for (const path of await this.list())
      try {
        return { checkpoint: await readCheckpoint(path), skipped };
      } catch (error) {
        if (!(error instanceof CheckpointError)) throw error;
        skipped.push(error);
      }
    const [first] = skipped;
    if (first)
      throw new CheckpointError(
        "not-found",
        this.directory,
        `has ${skipped.length} checkpoints and none that is whole (${first.message.split(": ", 1)[0]}): restore one from a copy, or train anew without resuming`,
        first,
      );
    return { checkpoint: undefined, skipped };
  }

  /** The folders of the checkpoints, the newest first; they are validated only when they are read. */
  async list(): Promise<readonly string[]> {
    const paths = (await this.#entries()).map((name) => join(this.directory, name));
    return paths.filter((path) => placeOf(path)).sort((a, b) => (isNewer(a, b) ? -1 : 1));
  }

  /** The newest checkpoint that was marked as the best, if it is whole. */
  async best(): Promise<Checkpoint | undefined> {
    const path = await this.#bestPath(await this.list());
    return path === undefined ? undefined : await readCheckpoint(path);
  }

  /**
   * Removes all checkpoints.
   * @throws StorageError
   */
  async clear(): Promise<void> {
    for (const path of await this.list()) await this.#discard(path);
  }

  async #rotate(): Promise<void> {
    const all = await this.list();
    if (all.length <= this.#keep) return;
    const best = await this.#bestPath(all);
    for (const path of all.slice(this.#keep)) if (path !== best) await this.#discard(path);
  }

  async #bestPath(newestFirst: readonly string[]): Promise<string | undefined> {
    for (const path of newestFirst) {
      const manifest = await readManifest(path).catch(() => undefined);
      if (manifest?.best) return path;
    }
    return undefined;
  }

  /** Replaces the manifest by one that says so. */
  async #markBest(path: string): Promise<void> {
    const manifest = await readManifest(path);
    if (manifest.best) return;
    // A file more in its folder would damage the checkpoint if the process ended here.
    const beside = `${path}.manifest${suffixes.partial}`;
    await storingAsync(beside, () =>
      writeNewFile(this.#fs, beside, filling(formatManifest({ ...manifest, best: true }))),
    );
    await storingAsync(path, () => this.#fs.rename(beside, join(path, manifestName)));
    await this.#sync(path);
  }

  /** Removes a checkpoint by a rename first, so that a process that ends in between leaves none that looks damaged. */
  async #discard(path: string): Promise<void> {
    const removed = `${path}${suffixes.removed}`;
    await storingAsync(path, () => this.#fs.rename(path, removed));
    await this.#remove(removed);
  }

  /** Makes the folder, and removes partial checkpoints of an interrupted process. */
  async #prepare(): Promise<void> {
    if (!existsSync(this.directory)) {
      storing(this.directory, () => makeDirectory(this.directory));
      await this.#sync(dirname(this.directory));
    }
    for (const name of await this.#entries())
      if (isUnfinished(name)) await this.#remove(join(this.directory, name));
  }

  #remove(path: string): Promise<void> {
    return storingAsync(path, () => this.#fs.rm(path, { recursive: true, force: true }));
  }

  #sync(path: string): Promise<void> {
    return storingAsync(path, () => syncDirectory(this.#fs, path));
  }

  async #entries(): Promise<readonly string[]> {
    try {
      return await this.#fs.readdir(this.directory);
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code === "ENOENT") return [];
      if (code === undefined) throw error;
      throw new StorageError(this.directory, error, "read");
    }
  }
}

const placeOf = (path: string): ReturnType<typeof placeOfName> => placeOfName(basename(path));

const isNewer = (path: string, than: string): boolean => {
  const [place, other] = [placeOf(path), placeOf(than)];
  return place !== undefined && other !== undefined && isAfter(place, other);
};

const isWhole = (path: string): Promise<boolean> =>
  readCheckpoint(path).then(
    () => true,
    () => false,
  );
