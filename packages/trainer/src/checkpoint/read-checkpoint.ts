import { lstat, open, readdir } from "node:fs/promises";
import { totalmem } from "node:os";
import { basename, join } from "node:path";
import { readSafetensors, SafetensorsError, type SafetensorsTensor } from "@halfstep/safetensors";
import { systemFault } from "../errors.js";
import { type Locate, locateFrom } from "../files/located.js";
import type { Checkpoint } from "./checkpoint.js";
import { CheckpointError } from "./checkpoint-error.js";
import {
  type FileEntry,
  type Manifest,
  manifestLimit,
  manifestName,
  parseJson,
  parseManifest,
  remedy,
  sha256Of,
} from "./manifest.js";
import { joinTree } from "./state-tree.js";
import { stateName } from "./write-checkpoint.js";

/**
 * Reads and validates a checkpoint: it must have exactly the saved files with exactly the saved bytes. Allocates at most
 * the length of the files, and executes nothing.
 * @throws CheckpointError
 */
export function readCheckpoint(path: string): Promise<Checkpoint> {
  return readLocated(path, locateFrom(path));
}

/** As {@link readCheckpoint}, of a store that knows where its paths are. */
export async function readLocated(path: string, locate: Locate): Promise<Checkpoint> {
  const { step, microStep, best, tables, files } = await readManifest(path, locate);
  const found = await reading(path, () => readdir(locate(path)));
  const extra = found.find(
    (name) => name !== manifestName && !files.some((file) => file.name === name),
  );
  if (extra !== undefined)
    throw new CheckpointError(
      "extra-file",
      join(path, extra),
      `was not saved with the checkpoint: remove it, or ${remedy}`,
    );
  const contents = new Map<string, Uint8Array>();
  for (const file of files) contents.set(file.name, await readChecked(path, file, locate));
  return {
    path,
    step,
    microStep,
    best,
    ...(tables !== undefined && { tables }),
    parts: partsOf(path, contents),
  };
}

/**
 * The manifest of a checkpoint alone.
 * @throws CheckpointError
 */
export async function readManifest(path: string, locate: Locate): Promise<Manifest> {
  const stats = await lstat(locate(path)).catch(() => undefined);
  if (!stats?.isDirectory())
    throw new CheckpointError(
      "not-found",
      path,
      "is no checkpoint: give the folder of one, whose name begins with step-",
    );
  const file = join(path, manifestName);
  return parseManifest(textOf(await readFile(file, undefined, locate)), file);
}

/** The most bytes that are read as `state.json`: arrays are in files of their own. */
const stateLimit = 2 ** 26;

async function readChecked(
  folder: string,
  { name, bytes, sha256 }: FileEntry,
  locate: Locate,
): Promise<Uint8Array> {
  const path = join(folder, name);
  if (name === stateName && bytes > stateLimit)
    throw new CheckpointError(
      "malformed",
      path,
      `has ${bytes} bytes, too many for a list of states: ${remedy}`,
    );
  const content = await readFile(path, bytes, locate);
  if (sha256Of(content) !== sha256)
    throw new CheckpointError("hash", path, `has other bytes than were saved: ${remedy}`);
  return content;
}

/** Reads a file of known length; without a length, at most as many bytes as a manifest may have. */
function readFile(path: string, length: number | undefined, locate: Locate): Promise<Uint8Array> {
  return reading(path, async () => {
    const stats = await lstat(locate(path));
    if (!stats.isFile()) throw new CheckpointError("missing-file", path, `is no file: ${remedy}`);
    const handle = await open(locate(path), "r");
    try {
      const { size } = await handle.stat();
      if (length === undefined ? size > manifestLimit : size !== length)
        throw new CheckpointError(
          length === undefined ? "manifest" : "length",
          path,
          `has ${size} bytes, ${length === undefined ? "too many for a manifest" : `and ${length} were saved`}: ${remedy}`,
        );
      const bytes = bytesOf(size, path);
      for (let at = 0; at < size; ) {
        const { bytesRead } = await handle.read(bytes, at, Math.min(size - at, largestRead), at);
        if (bytesRead === 0)
          throw new CheckpointError("length", path, `became shorter while it was read: ${remedy}`);
        at += bytesRead;
      }
      return bytes;
    } finally {
      await handle.close();
    }
  });
}

/**
 * Allocates so many bytes, which may be too many: a sparse file may have any length, and systems overcommit memory.
 * @throws CheckpointError where so many bytes cannot be allocated
 */
function bytesOf(size: number, path: string): Uint8Array {
  const tooMany = (cause?: unknown): CheckpointError =>
    new CheckpointError(
      "unreadable",
      path,
      `has ${size} bytes, more than there is memory for: ${remedy}`,
      cause,
    );
  if (size > totalmem()) throw tooMany();
  try {
    return new Uint8Array(size);
  } catch (error) {
    throw tooMany(error);
  }
}

/** Keeps a byte order mark, which this package never writes and which therefore fails validation. */
const textOf = (bytes: Uint8Array | undefined): string =>
  new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes);

// Node reads no more than 2^31 − 1 bytes at once.
const largestRead = 2 ** 30;

async function reading<T>(path: string, read: () => Promise<T>): Promise<T> {
  try {
    return await read();
  } catch (error) {
    if (error instanceof CheckpointError || !(error instanceof Error && "code" in error))
      throw error;
    if (error.code === "ENOENT")
      throw new CheckpointError("missing-file", path, `is missing: ${remedy}`, error);
    const reason = systemFault(error)?.fact ?? error.code;
    throw new CheckpointError("unreadable", path, `cannot be read (${reason}): ${remedy}`, error);
  }
}

function partsOf(
  path: string,
  contents: ReadonlyMap<string, Uint8Array>,
): Readonly<Record<string, unknown>> {
  const statePath = join(path, stateName);
  const malformed = (file: string, fact: string, cause?: unknown): CheckpointError =>
    new CheckpointError("malformed", file, `${fact}: ${remedy}`, cause);
  const json = parseJson(textOf(contents.get(stateName)));
  if (typeof json !== "object" || json === null || Array.isArray(json))
    throw malformed(statePath, "is no list of states");
  const parts: Record<string, unknown> = Object.create(null);
  for (const [name, tree] of Object.entries(json)) {
    const file = `${name}.safetensors`;
    const tensors = tensorsOf(join(path, file), contents.get(file), malformed);
    try {
      parts[name] = joinTree({ json: tree, tensors });
    } catch (error) {
      if (!(error instanceof TypeError)) throw error;
      throw malformed(statePath, `${name} ${error.message}`, error);
    }
  }
  const stray = [...contents.keys()].find(
    (name) => name !== stateName && !(basename(name, ".safetensors") in parts),
  );
  if (stray !== undefined) throw malformed(join(path, stray), "belongs to no state");
  return parts;
}

function tensorsOf(
  path: string,
  bytes: Uint8Array | undefined,
  malformed: (file: string, fact: string, cause: unknown) => CheckpointError,
): Readonly<Record<string, SafetensorsTensor>> {
  if (!bytes) return {};
  try {
    return readSafetensors(bytes).tensors;
  } catch (error) {
    if (!(error instanceof SafetensorsError)) throw error;
    throw malformed(path, `is malformed (${error.message})`, error);
  }
}
