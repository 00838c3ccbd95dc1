import type { ReadableHandle } from "@halfstep/safetensors/node";
import { TorchFileError } from "./error.js";

/** Bytes that are read by range. */
export interface ByteSource {
  readonly size: number;
  /** The file in error messages. */
  readonly name: string | undefined;
  /**
   * A copy of some bytes.
   * @throws TorchFileError where the source ends before them; nothing has been allocated then
   */
  read(position: number, length: number): Promise<Uint8Array<ArrayBuffer>>;
}

// Node reads no more than 2^31 − 1 bytes at once.
const pieceBytes = 2 ** 30;

/** The bytes of an open file. */
export async function sourceOverHandle(
  handle: ReadableHandle,
  name: string | undefined,
): Promise<ByteSource> {
  const { size } = await handle.stat();
  const read = async (position: number, length: number): Promise<Uint8Array<ArrayBuffer>> => {
    requireRange(position, length, { size, name });
    const bytes = allocate(length, name);
    for (let at = 0; at < length; ) {
      const most = Math.min(length - at, pieceBytes);
      const { bytesRead } = await handle.read(bytes, at, most, position + at);
      if (bytesRead === 0)
        throw new TorchFileError(
          "truncated",
          "the file ends here, and was longer when it was opened",
          { source: name },
        );
      at += bytesRead;
    }
    return bytes;
  };
  return { size, name, read };
}

/** The bytes of an array. */
export const sourceOverBytes = (bytes: Uint8Array, name: string | undefined): ByteSource => ({
  size: bytes.length,
  name,
  read: async (position, length) => {
    requireRange(position, length, { size: bytes.length, name });
    return new Uint8Array(bytes.subarray(position, position + length));
  },
});

function requireRange(
  position: number,
  length: number,
  { size, name }: Pick<ByteSource, "size" | "name">,
): void {
  if (!(position >= 0 && length >= 0 && position + length <= size))
    throw new TorchFileError(
      "truncated",
      `bytes ${position} to ${position + length} are wanted, and the file has ${size}: download or copy it again`,
      { source: name },
    );
}

/** Zeros to be filled. @throws TorchFileError where the engine has no array of that length */
function allocate(length: number, source: string | undefined): Uint8Array<ArrayBuffer> {
  try {
    return new Uint8Array(length);
  } catch (cause) {
    if (!(cause instanceof RangeError)) throw cause;
    throw new TorchFileError("too-large", `${length} bytes fit no array here`, { source });
  }
}
