import { type FileHandle, open } from "node:fs/promises";
import type { SafetensorsDtype, SafetensorsTensor } from "@halfstep/safetensors";
import type { ReadableHandle } from "@halfstep/safetensors/node";
import { openArchive, readRecord } from "./archive.js";
import { type ByteSource, sourceOverBytes, sourceOverHandle } from "./byte-source.js";
import { TorchFileError } from "./error.js";
import { fileKindOf, kindPrefixBytes, wrongKind } from "./file-kind.js";
import { findTensors } from "./find-tensors.js";
import { requireKnown } from "./known-options.js";
import { readLegacy } from "./legacy.js";
import type { Pickled } from "./pickle/unpickle.js";
import { unpickleHarmless } from "./pickle/unpickle-harmless.js";
import type { StorageRecord } from "./storage.js";
import { type TensorRecord, tensorFrom } from "./tensor-record.js";

/** Options of reading torch checkpoints. */
export interface TorchReadOptions {
  /** Stands for the file in error messages. */
  readonly source?: string;
  /**
   * The dict that has the tensors, as a dotted path of keys: `"generator"`, `"ema.state_dict"`, `""` for the outermost. Default: the state
   * dict of the model, where the checkpoint leaves no choice.
   */
  readonly key?: string;
  /** Refuse longer pickles. A thousand tensors take 100 kB. Default 64 MiB. */
  readonly maxPickleBytes?: number;
}

/** What a checkpoint says of a tensor. */
export interface TorchInfo {
  readonly dtype: SafetensorsDtype;
  readonly shape: readonly number[];
  /** Of its elements, without those of its storage that it leaves out. */
  readonly byteLength: number;
}

/** A checkpoint whose pickle has been read and checked, and whose tensors are read when asked for. */
export interface TorchFile extends AsyncDisposable {
  /** What the file has, by name, in the order of the state dict. No prototype. */
  readonly tensors: Readonly<Record<string, TorchInfo>>;
  /** Keys of the dicts around the tensors: `["state_dict"]`. */
  readonly path: readonly string[];
  /** What stood before all names and was taken away: `"module."` of DataParallel. */
  readonly prefix: string;
  /** Dotted keys of what has tensors, too, and is not among `tensors`: `["optimizer"]`. The option `key` chooses one. */
  readonly skipped: readonly string[];
  /**
   * Reads one tensor into memory of its own, with its elements in row-major order.
   * @throws TorchFileError when the file has none of that name, or has been cut since it was opened
   */
  read(name: string): Promise<SafetensorsTensor>;
  /** Reads these tensors, or all, one after the other. */
  readAll(names?: Iterable<string>): Promise<Record<string, SafetensorsTensor>>;
  /** Closes a file that was opened by its path; a handle that was passed in stays open. */
  close(): Promise<void>;
}

/**
 * Opens a checkpoint that `torch.save()` wrote, by its path or a handle. Its pickle is read as data: nothing in it is executed.
 * @throws TorchFileError when the file is malformed, hostile or of another kind; TypeError for options that do not exist or fit
 * @throws the system's error (with `code`) when it cannot be read
 *
 * @example
 * await using file = await openTorch("resnet20.th");
 * const { shape, data } = await file.read("conv1.weight");
 */
export async function openTorch(
  file: string | URL | ReadableHandle,
  options: TorchReadOptions = {},
): Promise<TorchFile> {
  if (typeof file !== "string" && !(file instanceof URL))
    return fileOver(await sourceOverHandle(file, options.source), options);
  const handle = await open(file, "r");
  try {
    const source = await sourceOverHandle(handle, options.source ?? String(file));
    return await fileOver(source, options, handle);
  } catch (error) {
    await handle.close();
    throw error;
  }
}

/**
 * Reads a checkpoint that `torch.save()` wrote from memory. Tensors are copied when they are asked for.
 * @throws TorchFileError when it is malformed, hostile or of another kind; TypeError for what are no bytes, and for
 * options that do not exist or fit
 *
 * @example
 * const file = await readTorch(new Uint8Array(await response.arrayBuffer()));
 */
export const readTorch = async (
  bytes: ArrayBufferLike | Uint8Array,
  options: TorchReadOptions = {},
): Promise<TorchFile> => fileOver(sourceOverBytes(bytesOf(bytes), options.source), options);

/** A typed array made of another one, or of a list, would be a copy of its elements. */
function bytesOf(bytes: ArrayBufferLike | Uint8Array): Uint8Array {
  // The tag, unlike instanceof, knows arrays of another realm and Node's Buffer.
  const kind = Object.prototype.toString.call(bytes).slice(8, -1);
  if (kind === "Uint8Array") return bytes as Uint8Array;
  if (kind === "ArrayBuffer" || kind === "SharedArrayBuffer")
    return new Uint8Array(bytes as ArrayBufferLike);
  throw new TypeError(
    `readTorch: bytes is a ${kind}: pass an ArrayBuffer or a Uint8Array; openTorch() opens paths`,
  );
}

const defaultPickleBytes = 2 ** 26;

/** How many times the length of the file all its tensors may take: one storage may be in it under several names. */
const mostNames = 64;

/** A pickle, and the storages that it speaks of. */
interface Content {
  readonly pickled: Pickled;
  /**
   * Gives a function that finds where the elements of a storage start in the file.
   * @throws TorchFileError where the file has no such storage, or one of another size
   */
  locate(storage: StorageRecord): () => Promise<number>;
}

async function fileOver(
  source: ByteSource,
  options: TorchReadOptions,
  owned?: FileHandle,
): Promise<TorchFile> {
  requireKnown("openTorch and readTorch", options, ["source", "key", "maxPickleBytes"]);
  const { key, maxPickleBytes = defaultPickleBytes } = options;
  if (typeof maxPickleBytes !== "number")
    throw new TypeError(`maxPickleBytes is ${String(maxPickleBytes)}: pass a number`);
  const kind = fileKindOf(
    await source.read(0, Math.min(source.size, kindPrefixBytes)),
    source.size,
  );
  if (kind !== "zip" && kind !== "pickle") throw wrongKind(kind, source.name);
  const { pickled, locate } = await (kind === "zip" ? zipContent : legacyContent)(
    source,
    maxPickleBytes,
  );
  const {
    tensors: records,
    path,
    prefix,
    skipped,
  } = findTensors(pickled.value, {
    source: source.name,
    key,
  });
  requireHonestSizes(records, source);
  const tensors: Record<string, TorchInfo> = Object.create(null);
  const positions = new Map<string, () => Promise<number>>();
  for (const [name, { type, shape, byteLength, storage }] of records) {
    tensors[name] = { dtype: type.dtype, shape, byteLength };
    positions.set(name, locate(storage));
  }

  const read = async (name: string): Promise<SafetensorsTensor> => {
    const record = records.get(name);
    const position = positions.get(name);
    if (record === undefined || position === undefined)
      throw new TorchFileError("unknown-tensor", "the file has none of that name", {
        source: source.name,
        tensor: name,
      });
    const { type, offset, span } = record;
    const start = span === 0 ? 0 : (await position()) + offset * type.bytes;
    return tensorFrom(record, await source.read(start, span * type.bytes));
  };
  const close = async (): Promise<void> => owned?.close();
  return {
    ...{ tensors, path, prefix, skipped, read, close },
    readAll: async (names = Object.keys(tensors)) => {
      const all: Record<string, SafetensorsTensor> = Object.create(null);
      for (const name of names) all[name] = await read(name);
      return all;
    },
    [Symbol.asyncDispose]: close,
  };
}

/** Tensors that repeat elements (stride 0) could take any memory: each may be as long as the file, all together some times as long. */
function requireHonestSizes(
  records: ReadonlyMap<string, TensorRecord>,
  { size, name: source }: ByteSource,
): void {
  let total = 0;
  for (const [tensor, { shape, byteLength }] of records) {
    total += byteLength;
    if (byteLength > size || total > mostNames * size)
      throw new TorchFileError(
        "too-large",
        `[${shape}] takes ${byteLength} bytes${byteLength > size ? "" : ` after ${total - byteLength} of others`}, and the file has ${size}: save a copy of expanded tensors (tensor.clone())`,
        { source, tensor },
      );
  }
}

async function legacyContent(source: ByteSource, mostBytes: number): Promise<Content> {
  const { pickled, positions } = await readLegacy(source, mostBytes);
  return {
    pickled,
    locate: ({ key }) => {
      const position = positions.get(key) ?? missingStorage(key, source);
      return async () => position;
    },
  };
}

async function zipContent(source: ByteSource, mostBytes: number): Promise<Content> {
  const { records } = await openArchive(source);
  const fail = (problem: "kind" | "unsupported" | "too-large", fact: string): never => {
    throw new TorchFileError(problem, fact, { source: source.name });
  };
  const pickle = records.get("data.pkl");
  if (pickle === undefined)
    return fail(
      "kind",
      "is a zip archive without data.pkl, so none that torch.save() wrote: if the checkpoint is packed in it, unpack it first",
    );
  if (records.has("constants.pkl"))
    fail(
      "kind",
      "is a TorchScript archive (torch.jit.save): save torch.jit.load(file).state_dict() by torch.save()",
    );
  if (pickle.byteLength > mostBytes)
    fail(
      "too-large",
      `its pickle has ${pickle.byteLength} bytes, more than ${mostBytes}: raise the option maxPickleBytes`,
    );
  const order = records.get("byteorder");
  if (order && order.byteLength < 16) {
    const text = new TextDecoder().decode(await readRecord(source, order));
    if (text !== "little")
      fail(
        "unsupported",
        "was written on a big-endian machine: load and save it on a little-endian one",
      );
  }
  const pickled = unpickleHarmless(await readRecord(source, pickle), { source: source.name });
  return {
    pickled,
    locate: ({ key, count, type }) => {
      const record = records.get(`data/${key}`) ?? missingStorage(key, source);
      if (record.byteLength !== count * type.bytes)
        throw new TorchFileError(
          "storage",
          `storage ${JSON.stringify(key)} has ${record.byteLength} bytes, and its pickle says ${count * type.bytes}`,
          { source: source.name },
        );
      return record.position;
    },
  };
}

function missingStorage(key: string, source: ByteSource): never {
  throw new TorchFileError(
    "storage",
    `has no storage ${JSON.stringify(key.slice(0, 80))}: download or copy it again`,
    { source: source.name },
  );
}
