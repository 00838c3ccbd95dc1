import { described, requireList } from "./checks.js";
import { DataError } from "./error.js";
import type { ImageSet } from "./images.js";

/** Bytes of a file, and what stands for them in error messages. */
export interface NamedBytes {
  readonly name: string;
  readonly bytes: Uint8Array;
}

const side = 32;
const plane = side * side;
const record = 1 + 3 * plane;

/**
 * Reads files of CIFAR-10's binary version (https://www.cs.toronto.edu/~kriz/cifar.html) as one set, in their order: records of a
 * label from 0 to 9, then 1024 red, 1024 green and 1024 blue bytes, row by row. The set is channels-last.
 * @throws DataError when a file is empty, ends inside a record, or has another label; TypeError for what are no files
 */
export const readCifar10 = (files: readonly NamedBytes[]): ImageSet => {
  requireFiles(files);
  for (const { name, bytes } of files)
    if (bytes.length === 0 || bytes.length % record !== 0)
      throw new DataError(
        name,
        `has ${bytes.length} bytes, which are no whole number of CIFAR-10 records of ${record}`,
      );
  const count = files.reduce((sum, { bytes }) => sum + bytes.length / record, 0);
  const images = new Uint8Array(count * 3 * plane);
  const labels = new Uint8Array(count);
  let at = 0;
  for (const { name, bytes } of files)
    for (let start = 0; start < bytes.length; start += record, at++) {
      const label = bytes[start] as number;
      if (label > 9)
        throw new DataError(name, `label ${label} of record ${start / record} is not below 10`);
      labels[at] = label;
      const target = at * 3 * plane;
      for (let pixel = 0; pixel < plane; pixel++)
        for (let channel = 0; channel < 3; channel++)
          images[target + 3 * pixel + channel] = bytes[
            start + 1 + channel * plane + pixel
          ] as number;
    }
  return { images, labels, count, height: side, width: side, channels: 3 };
};

function requireFiles(files: readonly NamedBytes[]): void {
  const pass = "pass { name, bytes } for each file, its bytes as a Uint8Array";
  requireList("readCifar10", "files", files, `an array, and ${pass}`);
  for (const [i, file] of Array.from(files).entries()) {
    const { name, bytes } = (file ?? {}) as Partial<NamedBytes>;
    if (typeof name !== "string" || Object.prototype.toString.call(bytes) !== "[object Uint8Array]")
      throw new TypeError(
        `readCifar10: file ${i} is ${described(file)}${bytes === undefined ? "" : ` with bytes that are ${described(bytes)}`}: ${pass}`,
      );
  }
}
