import { dtypes, type SafetensorsData, type SafetensorsDtype } from "./dtype.js";
import { SafetensorsError } from "./error.js";
import { requireKnown } from "./known-options.js";
import { layOut, type Named, type Placed } from "./layout.js";
import { allocate, type SafetensorsTensor } from "./tensor.js";

/** Options of writing safetensors. */
export interface WriteOptions {
  /** Text about the file, by key, as an object, a Map or another list of pairs. Empty metadata is not written. */
  readonly metadata?: Named<string>;
}

/** A tensor whose elements are asked for when their turn comes, for example from a GPU. */
export type DeferredTensor = {
  readonly [D in SafetensorsDtype]: {
    readonly dtype: D;
    readonly shape: readonly number[];
    readonly data: () => SafetensorsData[D] | PromiseLike<SafetensorsData[D]>;
  };
}[SafetensorsDtype];

/** Where a file is written to: the `FileHandle` of Node, or anything that takes bytes in turn. */
export interface ByteSink {
  /** Takes at least the first of `bytes`, and says how many. They are the caller's again once the promise resolves. */
  write(bytes: Uint8Array): Promise<{ readonly bytesWritten: number }>;
}

/**
 * A safetensors file in memory. The bytes depend on nothing but what is stored: not on the order of `tensors`.
 * @throws SafetensorsError when something cannot be stored; TypeError for what are no tensors by name
 *
 * @example
 * writeSafetensors({ bias: { dtype: "F32", shape: [3], data: Float32Array.of(1, 2, 3) } });
 */
export function writeSafetensors(
  tensors: Named<SafetensorsTensor>,
  options: WriteOptions = {},
): Uint8Array<ArrayBuffer> {
  requireKnown("writeSafetensors", options, ["metadata"]);
  const { metadata } = options;
  const { header, tensors: placed, byteLength } = layOut(tensors, metadata);
  const pieces = placed.map((each) => bytesOf(each, each.tensor.data));
  const file = allocate(byteLength, {});
  file.set(header);
  placed.forEach(({ byteOffset }, index) => {
    file.set(pieces[index] as Uint8Array, byteOffset);
  });
  return file;
}

/**
 * Writes a safetensors file to a sink, from where it is, and returns the bytes written. Beyond the header nothing is
 * copied, and of deferred tensors one is held at a time. What fails leaves the file unfinished, and no reader
 * takes an unfinished file; replacing an older file in one go, and flushing to disk, is up to the caller.
 *
 * @throws SafetensorsError when something cannot be stored: before the first byte is written, except for deferred data
 * @throws what `sink` or a deferred tensor throws
 */
export async function writeSafetensorsTo(
  sink: ByteSink,
  tensors: Named<SafetensorsTensor | DeferredTensor>,
  options: WriteOptions = {},
): Promise<number> {
  requireKnown("writeSafetensorsTo", options, ["metadata"]);
  return prepareWrite(tensors, options)(sink);
}

/** Checks what is to be stored, and gives the function that writes it. */
export function prepareWrite(
  tensors: Named<SafetensorsTensor | DeferredTensor>,
  { metadata }: WriteOptions,
): (sink: ByteSink) => Promise<number> {
  const { header, tensors: placed, byteLength } = layOut(tensors, metadata);
  for (const each of placed) {
    const { data } = each.tensor;
    if (typeof data !== "function") bytesOf(each, data);
  }
  return async (sink) => {
    await writeAll(sink, header);
    for (const each of placed) {
      const { data } = each.tensor;
      await writeAll(sink, bytesOf(each, typeof data === "function" ? await data() : data));
    }
    return byteLength;
  };
}

// Node writes no more than 2^31 − 1 bytes at once; smaller pieces let a program see a signal or show progress.
const pieceBytes = 2 ** 26;

async function writeAll(sink: ByteSink, bytes: Uint8Array): Promise<void> {
  for (let at = 0; at < bytes.length; ) {
    const piece = bytes.subarray(at, at + pieceBytes);
    const written: { readonly bytesWritten: number } | undefined = await sink.write(piece);
    const taken = written?.bytesWritten ?? Number.NaN;
    // Otherwise a sink that takes nothing would keep this loop for ever.
    if (!(taken > 0 && taken <= piece.length))
      throw new Error(
        `the sink took ${written?.bytesWritten} bytes of ${piece.length}: its write() gives { bytesWritten }, at least 1`,
      );
    at += taken;
  }
}

/** The elements as bytes, if they are those of the tensor. */
function bytesOf(
  {
    name,
    tensor: { dtype, shape },
    byteLength,
  }: Placed<{ readonly dtype: SafetensorsDtype; readonly shape: readonly number[] }>,
  data: SafetensorsData[SafetensorsDtype],
): Uint8Array {
  const { array } = dtypes[dtype];
  const refuse = (fact: string): never => {
    throw new SafetensorsError("data", fact, { tensor: name });
  };
  // The tag, unlike instanceof, knows arrays of another realm and Node's Buffer.
  const kind = ArrayBuffer.isView(data) ? data[Symbol.toStringTag] : typeof data;
  if (kind !== array.name) refuse(`${dtype} is stored from a ${array.name}, not a ${kind}`);
  if (data.byteLength !== byteLength)
    refuse(
      `${dtype} [${shape}] takes ${byteLength / array.BYTES_PER_ELEMENT} elements of a ${array.name}, not ${data.length}`,
    );
  return new Uint8Array(data.buffer, data.byteOffset, byteLength);
}
