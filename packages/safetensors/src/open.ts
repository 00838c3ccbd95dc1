import { SafetensorsError } from "./error.js";
import { headerLength, parseHeader, prefixBytes, type ReadOptions, readOptions } from "./header.js";
import { requireKnown } from "./known-options.js";
import { allocate, type SafetensorsInfo, type SafetensorsTensor, tensorOver } from "./tensor.js";

/** What is needed of a Node `FileHandle` to read from it. */
export interface ReadableHandle {
  stat(): Promise<{ readonly size: number }>;
  read(
    into: Uint8Array,
    offset: number,
    length: number,
    position: number,
  ): Promise<{ readonly bytesRead: number }>;
}

/** A file whose header has been read and checked, and whose tensors are read when asked for. */
export interface SafetensorsFile extends AsyncDisposable {
  /** The `__metadata__` of the file; empty where it has none. No prototype. */
  readonly metadata: Readonly<Record<string, string>>;
  /** What the file has, by name, in the order of the data. No prototype. */
  readonly tensors: Readonly<Record<string, SafetensorsInfo>>;
  /**
   * Reads one tensor into memory of its own.
   * @throws SafetensorsError when the file has none of that name, or has been cut since it was opened
   */
  read(name: string): Promise<SafetensorsTensor>;
  /** Reads these tensors, or all, one after the other. */
  readAll(names?: Iterable<string>): Promise<Record<string, SafetensorsTensor>>;
  /** Closes a file that was opened by its path; a handle or a `Blob` that was passed in stays open. */
  close(): Promise<void>;
}

/**
 * Opens a safetensors file that a page was given, such as a `File` of an input or a `Blob` of a response, and reads its header and
 * nothing else. Files may be larger than memory.
 * @throws SafetensorsError when the file is malformed: no more than its header has been allocated then
 * @throws DOMException when it cannot be read, for example because it has changed on the disk
 *
 * @example
 * const file = await openSafetensorsBlob(input.files[0]);
 * const { shape, data } = await file.read("fc.weight");
 */
export const openSafetensorsBlob = (
  blob: Blob,
  options: ReadOptions = {},
): Promise<SafetensorsFile> => fileOver(handleOf(blob), options);

const handleOf = (blob: Blob): ReadableHandle => ({
  stat: async () => blob,
  async read(into, offset, length, position) {
    const piece = await blob.slice(position, position + length).arrayBuffer();
    into.set(new Uint8Array(piece), offset);
    return { bytesRead: piece.byteLength };
  },
});

/**
 * Reads the header of a file, whose tensors are read when asked for.
 * @param closing what closes the file; absent where it stays open
 * @throws SafetensorsError when the file is malformed
 */
export async function fileOver(
  handle: ReadableHandle,
  options: ReadOptions,
  closing?: () => Promise<void>,
): Promise<SafetensorsFile> {
  requireKnown("openSafetensors and openSafetensorsBlob", options, readOptions);
  const { source } = options;
  const { size } = await handle.stat();
  const prefix = await readAt(handle, 0, Math.min(size, prefixBytes), { source });
  const length = headerLength(prefix, size, options);
  const json = await readAt(handle, prefixBytes, length, { source });
  const { metadata, tensors } = parseHeader(json, size, source);

  const read = async (name: string): Promise<SafetensorsTensor> => {
    const info = tensors[name];
    if (info === undefined)
      throw new SafetensorsError("unknown-tensor", "the file has none of that name", {
        source,
        tensor: name,
      });
    const bytes = await readAt(handle, info.byteOffset, info.byteLength, { source, tensor: name });
    return tensorOver(info, bytes.buffer, 0);
  };
  const close = async (): Promise<void> => closing?.();
  return {
    metadata,
    tensors,
    read,
    readAll: async (names = Object.keys(tensors)) => {
      const all: Record<string, SafetensorsTensor> = Object.create(null);
      for (const name of names) all[name] = await read(name);
      return all;
    },
    close,
    [Symbol.asyncDispose]: close,
  };
}

// Node reads no more than 2^31 − 1 bytes at once, and a blob takes as much again.
const pieceBytes = 2 ** 28;

async function readAt(
  handle: ReadableHandle,
  position: number,
  byteLength: number,
  place: { readonly source: string | undefined; readonly tensor?: string },
): Promise<Uint8Array<ArrayBuffer>> {
  const bytes = allocate(byteLength, place);
  for (let at = 0; at < byteLength; ) {
    const length = Math.min(byteLength - at, pieceBytes);
    const { bytesRead } = await handle.read(bytes, at, length, position + at);
    if (bytesRead === 0)
      throw new SafetensorsError(
        "truncated",
        "the file ends here, and was longer when it was opened",
        { ...place, offset: position + at },
      );
    at += bytesRead;
  }
  return bytes;
}
