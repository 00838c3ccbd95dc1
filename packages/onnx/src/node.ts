import { closeSync, fstatSync, openSync, readSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Runtime } from "@halfstep/tensor";
import { naming, OnnxError } from "./errors.js";
import type { ByteSource } from "./import/external-data.js";
import { fromOnnx } from "./import/from-onnx.js";
import type { OnnxModel } from "./import/onnx-model.js";

/** Node reads fewer bytes than 2^31 at once. */
const pieceBytes = 2 ** 30;

/** Messages of protobuf are shorter. */
const longestModel = 2 ** 31 - 1;

/**
 * Opens an ONNX file as a module, with the files of its folder in which tensors lie. These are read by ranges, at most 32 MiB at once, and may
 * be longer than memory. Paths out of the folder are refused; a symbolic link in it is followed, as in caches of downloads.
 *
 * @throws OnnxError that names the file
 * @throws the system's error (with `code`) where a file cannot be read
 * @example
 * const model = await openOnnx(runtime, "model.onnx");
 */
export async function openOnnx(runtime: Runtime, path: string): Promise<OnnxModel> {
  const opened = new Map<string, number>();
  const open = (file: string): ByteSource => {
    const descriptor = opened.get(file) ?? openSync(file, "r");
    opened.set(file, descriptor);
    const found = fstatSync(descriptor);
    if (!found.isFile())
      throw new OnnxError("malformed", "is no file: give an ONNX model", [], file);
    const read = (offset: number, into: Uint8Array): void => fill(descriptor, file, offset, into);
    return { size: found.size, read };
  };
  try {
    const { size, read } = open(path);
    if (size > longestModel)
      throw new OnnxError(
        "size",
        `the file has ${size} bytes, and a graph at most ${longestModel}: save its tensors as external data`,
        [],
        path,
      );
    const bytes = new Uint8Array(size);
    naming(path, () => read(0, bytes));
    return fromOnnx(runtime, bytes, {
      source: path,
      external: (location) => open(join(dirname(path), location)),
    });
  } finally {
    for (const descriptor of opened.values()) closeSync(descriptor);
  }
}

/** Reads bytes that a file has. */
function fill(descriptor: number, file: string, offset: number, into: Uint8Array): void {
  for (let at = 0; at < into.length; ) {
    const length = Math.min(into.length - at, pieceBytes);
    const read = readSync(descriptor, into, at, length, offset + at);
    if (read === 0)
      throw new OnnxError(
        "malformed",
        `ends at ${offset + at}, and was longer when it was opened: copy the whole file`,
        [],
        file,
      );
    at += read;
  }
}
