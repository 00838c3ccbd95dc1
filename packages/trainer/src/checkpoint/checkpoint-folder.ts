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
import { type Locate, locatedFileSystem, locateFrom } from "../files/located.js";
import { makeDirectory } from "../files/make-directory.js";
import { requireKinds, said } from "../option-kinds.js";
import type {
  Checkpoint,
  CheckpointContent,
  CheckpointStore,
  NewestCheckpoint,
} from "./checkpoint.js";
import { CheckpointError } from "./checkpoint-error.js";
import {
  checkpointsIn,
  isAfter,
  isUnfinished,
  nameOf,
  nameOfReplaced,
  placeOf as placeOfName,
  suffixes,
} from "./checkpoint-name.js";
import { formatManifest, manifestName } from "./manifest.js";
import { readLocated, readManifest } from "./read-checkpoint.js";
import { Turns } from "./turns.js";
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
 * last, and then renamed. A failed write throws a StorageError and does not change earlier checkpoints. Of one that is being replaced
 * either the old or the new one is there at every moment.
 *
 * One process at a time may save to it; a `RunFolder` ensures that with its lock. It stays in its place where the process changes its working
 * directory.
 */
export class CheckpointFolder implements CheckpointStore {
  readonly directory: string;
  readonly #keep: number;
  readonly #fs: FileSystem;
  readonly #locate: Locate;
  readonly #turns: Turns = new Turns();

  /** @throws RangeError unless `keep` is a whole number from 1 on */
  constructor(directory: string, options: CheckpointFolderOptions = {}) {
    requireKinds("new CheckpointFolder()", options, { keep: "any", fileSystem: "any" });
    const { keep = 3, fileSystem = nodeFileSystem } = options;
    if (!(Number.isSafeInteger(keep) && keep >= 1))
      throw new RangeError(`keep is ${said(keep)}: it must be a whole number from 1 on`);
    this.directory = directory;
    this.#keep = keep;
    this.#locate = locateFrom(directory);
    this.#fs = locatedFileSystem(fileSystem, this.#locate);
  }

  /**
   * Saves a checkpoint, and removes those that rotation no longer keeps. It replaces one of the same step. Only a whole one with the same
   * state stays, and is marked if this one is the best. Checkpoints of later steps belong to an abandoned continuation or are damaged, and
   * are removed first. Two saves at once are done one after the other.
   * @throws StorageError; TypeError where a state cannot be saved
   */
  async save(content: CheckpointContent): Promise<void> {
    const write = prepareCheckpoint(content);
    return this.#turns.take(() => this.#save(content, write));
  }

  async #save(
    content: CheckpointContent,
    write: ReturnType<typeof prepareCheckpoint>,
  ): Promise<void> {
    await this.#prepare();
    const path = join(this.directory, nameOf(content));
    const partial = `${path}${suffixes.partial}`;
    const replaced = `${path}${suffixes.replaced}`;
    let isThere = false;
    try {
      await storingAsync(partial, () => this.#fs.mkdir(partial));
      await write(this.#fs, partial);
      const others = await this.#list();
      for (const other of others) if (isNewer(other, path)) await this.#discard(other);
      isThere = others.includes(path);
      if (isThere && (await this.#isSameState(path, partial))) {
        if (content.best) await this.#markBest(path);
        return await this.#remove(partial);
      }
      // Folders cannot take another's place: until the second rename is done, the old one is found by its other name.
      if (isThere) await storingAsync(path, () => this.#fs.rename(path, replaced));
      await storingAsync(path, () => this.#fs.rename(partial, path));
    } catch (error) {
      // Free the space of the partial checkpoint: the disk may be full.
      await this.#fs.rm(partial, { recursive: true, force: true }).catch(() => {});
      throw error;
    }
    await this.#sync(this.directory);
    if (isThere) await this.#remove(replaced);
    await this.#rotate();
  }

  /**
   * The newest whole checkpoint, and the errors of newer ones.
   * @throws CheckpointError where there are checkpoints and none is whole
   */
  newest(): Promise<NewestCheckpoint> {
    return this.#turns.take(() => this.#newest());
  }

  async #newest(): Promise<NewestCheckpoint> {
    const skipped: CheckpointError[] = [];
    for (const path of await this.#list())
      try {
        return { checkpoint: await readLocated(path, this.#locate), skipped };
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
    return (await this.#list()).map(this.#locate);
  }

  async #list(): Promise<readonly string[]> {
    const paths = checkpointsIn(await this.#entries()).map((name) => join(this.directory, name));
    return paths.sort((a, b) => (isNewer(a, b) ? -1 : 1));
  }

  /** The newest checkpoint that was marked as the best, if it is whole. */
  best(): Promise<Checkpoint | undefined> {
    return this.#turns.take(async () => {
      const path = await this.#bestPath(await this.#list());
      return path === undefined ? undefined : await readLocated(path, this.#locate);
    });
  }

  /**
   * Removes all checkpoints.
   * @throws StorageError
   */
  clear(): Promise<void> {
    return this.#turns.take(async () => {
      await this.#tidy();
      for (const path of await this.#list()) await this.#discard(path);
    });
  }

  /** Whether a checkpoint is whole, and has the bytes of another that was just written, but for the mark of the best. */
  async #isSameState(path: string, written: string): Promise<boolean> {
    const stateOf = async (folder: string): Promise<string> =>
      formatManifest({ ...(await readManifest(folder, this.#locate)), best: false });
    const wanted = await stateOf(written);
    try {
      if ((await stateOf(path)) !== wanted) return false;
      await readLocated(path, this.#locate);
      return true;
    } catch {
      return false;
    }
  }

  async #rotate(): Promise<void> {
    const all = await this.#list();
    if (all.length <= this.#keep) return;
    const best = await this.#bestPath(all);
    for (const path of all.slice(this.#keep)) if (path !== best) await this.#discard(path);
  }

  async #bestPath(newestFirst: readonly string[]): Promise<string | undefined> {
    for (const path of newestFirst) {
      const manifest = await readManifest(path, this.#locate).catch(() => undefined);
      if (manifest?.best) return path;
    }
    return undefined;
  }

  /** Replaces the manifest by one that says so. */
  async #markBest(path: string): Promise<void> {
    const manifest = await readManifest(path, this.#locate);
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

  /** Makes the folder, and tidies it. */
  async #prepare(): Promise<void> {
    const place = this.#locate(this.directory);
    if (!existsSync(place)) {
      storing(this.directory, () => makeDirectory(place));
      await this.#sync(dirname(place));
    }
    await this.#tidy();
  }

  /** After an interrupted process: removes what is unfinished, and gives a checkpoint that was not replaced its name again. */
  async #tidy(): Promise<void> {
    const names = await this.#entries();
    const checkpoints = checkpointsIn(names);
    for (const name of names) {
      const path = join(this.directory, name);
      const old = checkpoints.includes(name) ? nameOfReplaced(name) : undefined;
      if (old !== undefined)
        await storingAsync(path, () => this.#fs.rename(path, join(this.directory, old)));
      else if (isUnfinished(name)) await this.#remove(path);
    }
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

const placeOf = (path: string): ReturnType<typeof placeOfName> => {
  const name = basename(path);
  return placeOfName(nameOfReplaced(name) ?? name);
};

const isNewer = (path: string, than: string): boolean => {
  const [place, other] = [placeOf(path), placeOf(than)];
  return place !== undefined && other !== undefined && isAfter(place, other);
};
