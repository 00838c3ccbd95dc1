import { headerLength, parseHeader, prefixBytes, type ReadOptions, readOptions } from "./header.js";
import { requireKnown } from "./known-options.js";
import { type SafetensorsTensor, tensorOver } from "./tensor.js";

/** The content of a file. Both records have no prototype, so that any name is just a name. */
export interface Safetensors {
  /** The `__metadata__` of the file; empty where it has none. */
  readonly metadata: Readonly<Record<string, string>>;
  /** Tensors by name, in the order of their data. */
  readonly tensors: Readonly<Record<string, SafetensorsTensor>>;
}

/**
 * Reads a safetensors file from memory.
 *
 * The data of a tensor is a view of `bytes` where its alignment allows it (as in every file that this package or the
 * reference wrote, read to the start of a buffer), else a copy. It has the byte order of the machine: little-endian wherever
 * WebGPU runs.
 *
 * @throws SafetensorsError when the file is malformed; nothing but a copy of its header has been allocated then. TypeError for what
 * are no bytes.
 *
 * @example
 * const { tensors, metadata } = readSafetensors(await response.arrayBuffer());
 * tensors["fc.weight"]; // { dtype: "F32", shape: [10, 784], data: Float32Array }
 */
export function readSafetensors(
  bytes: ArrayBufferLike | Uint8Array,
  options: ReadOptions = {},
): Safetensors {
  requireKnown("readSafetensors", options, readOptions);
  const file = bytesOf(bytes);
  const length = headerLength(file, file.length, options);
  // A copy, because TextDecoder refuses shared memory, and other threads cannot write to the copy.
  const json = new Uint8Array(file.subarray(prefixBytes, prefixBytes + length));
  const { metadata, tensors: infos } = parseHeader(json, file.length, options.source);
  const tensors: Record<string, SafetensorsTensor> = Object.create(null);
  for (const [name, info] of Object.entries(infos))
    tensors[name] = tensorOver(info, file.buffer, file.byteOffset + info.byteOffset);
  return { metadata, tensors };
}

function bytesOf(bytes: ArrayBufferLike | Uint8Array): Uint8Array {
  // The tag, unlike instanceof, knows arrays of another realm and Node's Buffer.
  const kind = typeof bytes === "object" && bytes !== null ? bytes[Symbol.toStringTag] : undefined;
  if (kind === "Uint8Array") return bytes as Uint8Array;
  if (kind === "ArrayBuffer" || kind === "SharedArrayBuffer")
    return new Uint8Array(bytes as ArrayBufferLike);
  throw new TypeError(
    `readSafetensors: bytes is ${kind ?? (bytes === null ? bytes : typeof bytes)}: pass an ArrayBuffer or a Uint8Array; openSafetensors() opens paths`,
  );
}
