import { closeSync, fstatSync, openSync, readSync } from "node:fs";
import { endianness } from "node:os";
import { decodeArray } from "../arrays.js";
import { float16 } from "../float16.js";
import { CliError } from "./errors.js";

/** A file of numbers, read in pieces: memory stays constant. */
export interface NumberFile {
  readonly dtype: "float16" | "float32" | "float64";
  readonly shape: readonly number[];
  readonly count: number;
}

type Dtype = NumberFile["dtype"];

const dtypes: Readonly<Record<string, Dtype>> = {
  "<f2": "float16",
  "<f4": "float32",
  "<f8": "float64",
};
const byteWidths: Readonly<Record<Dtype, number>> = { float16: 2, float32: 4, float64: 8 };
const pieceBytes = 1 << 20;
/** numpy's own headers have about 100 bytes; `np.load` refuses more than 10,000 too. */
const maxHeaderBytes = 10_000;

/**
 * Reads all numbers of a .npy file (versions 1 to 3; little-endian float16, float32 or float64) or of a .f32 file. It passes
 * them to `use` piece by piece in the order of the file, C or Fortran.
 * @throws CliError if the file cannot be read (exit code 4), or is missing or malformed (2).
 */
export function readNumberFile(
  path: string,
  use: (piece: Float32Array | Float64Array) => void,
): NumberFile {
  const isNpy = path.toLowerCase().endsWith(".npy");
  if (!isNpy && !path.toLowerCase().endsWith(".f32")) {
    throw new CliError(`${path} is neither .npy nor .f32: name the file by what it holds`);
  }
  return withFile(path, (read, size) => {
    const { dtype, shape, start } = isNpy
      ? npyHeader(path, read, size)
      : { dtype: "float32" as const, shape: [size / 4], start: 0 };
    const width = byteWidths[dtype];
    const count = shape.reduce((product, extent) => product * extent, 1);
    if (!Number.isSafeInteger(count)) {
      throw new CliError(
        isNpy
          ? `${path}: shape (${shape.join(", ")}) is too large`
          : `${path} has ${size} bytes, no multiple of 4: it holds no float32`,
      );
    }
    if (size !== start + count * width) {
      throw new CliError(
        `${path} has ${size} bytes, but ${count} ${dtype} numbers from byte ${start} on need ${start + count * width}`,
      );
    }
    const bytes = new Uint8Array(Math.min(pieceBytes, size - start));
    for (let at = start; at < size; at += bytes.length) {
      const piece = bytes.subarray(0, Math.min(bytes.length, size - at));
      read(piece, at);
      use(numbersOf(piece, dtype));
    }
    return { dtype, shape, count };
  });
}

function numbersOf(bytes: Uint8Array, dtype: Dtype): Float32Array | Float64Array {
  const { buffer, byteOffset, byteLength } = bytes;
  const length = byteLength / byteWidths[dtype];
  if (endianness() === "BE") {
    const swapped = Buffer.from(buffer, byteOffset, byteLength);
    if (dtype === "float16") swapped.swap16();
    else if (dtype === "float32") swapped.swap32();
    else swapped.swap64();
  }
  if (dtype === "float64") return new Float64Array(buffer, byteOffset, length);
  if (dtype === "float32") return new Float32Array(buffer, byteOffset, length);
  return decodeArray(new Uint16Array(buffer, byteOffset, length), float16);
}

type Read = (into: Uint8Array, at: number) => void;

function withFile<T>(path: string, body: (read: Read, size: number) => T): T {
  let file: number | undefined;
  try {
    const opened = openSync(path, "r");
    file = opened;
    const status = fstatSync(opened);
    if (!status.isFile()) throw new CliError(`${path} is no file`);
    return body((into, at) => {
      let done = 0;
      while (done < into.length) {
        const count = readSync(opened, into, done, into.length - done, at + done);
        if (count === 0) throw new CliError(`${path} became shorter while it was read`, 4);
        done += count;
      }
    }, status.size);
  } catch (error) {
    if (error instanceof CliError) throw error;
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === undefined) throw error;
    if (code === "ENOENT") throw new CliError(`${path} does not exist`);
    throw new CliError(`${path} cannot be read (${code ?? message})`, 4);
  } finally {
    if (file !== undefined) closeSync(file);
  }
}

/** The header of the NPY format (numpy, `numpy/lib/format.py`), which is a Python literal: only numpy's own form is taken. */
function npyHeader(
  path: string,
  read: Read,
  size: number,
): { dtype: Dtype; shape: readonly number[]; start: number } {
  const malformed = (what: string): CliError => new CliError(`${path} is no .npy file: ${what}`);
  const part = (at: number, length: number): Uint8Array => {
    if (at + length > size) throw malformed(`it ends within its header`);
    const bytes = new Uint8Array(length);
    read(bytes, at);
    return bytes;
  };
  const magic = part(0, 8);
  if (String.fromCharCode(...magic.subarray(0, 6)) !== "\u0093NUMPY") {
    throw malformed("it does not begin with \\x93NUMPY");
  }
  const major = magic[6] as number;
  if (major < 1 || major > 3) throw malformed(`version ${major} is unknown`);
  const lengthBytes = major === 1 ? 2 : 4;
  const length = part(8, lengthBytes).reduceRight((sum, byte) => sum * 256 + byte, 0);
  if (length > maxHeaderBytes) throw malformed(`its header claims ${length} bytes`);
  const start = 8 + lengthBytes + length;
  const header = new TextDecoder("latin1").decode(part(8 + lengthBytes, length));

  const entries = new Map<string, string>();
  const body = /^\{(.*)\} *\n$/s.exec(header)?.[1];
  if (body === undefined) throw malformed("its header is no dictionary");
  const rest = body.replaceAll(
    /\s*'(descr|fortran_order|shape)': *('[^']*'|True|False|\([\d, ]*\)) *(?:,|$)/g,
    (_, key: string, value: string) => {
      if (entries.has(key)) throw malformed(`it has two entries ${key}`);
      entries.set(key, value);
      return "";
    },
  );
  if (rest.trim() !== "") throw malformed(`its header has "${rest.trim().slice(0, 40)}"`);
  const entry = (key: string): string => {
    const value = entries.get(key);
    if (value === undefined) throw malformed(`its header has no ${key}`);
    return value;
  };
  const descr = entry("descr").replaceAll("'", "");
  const dtype = dtypes[descr];
  if (dtype === undefined) {
    throw new CliError(
      `${path} holds ${descr}: use little-endian float16, float32 or float64 (<f2, <f4, <f8)`,
    );
  }
  if (!/^(True|False)$/.test(entry("fortran_order"))) {
    throw malformed(`its fortran_order is ${entry("fortran_order").slice(0, 40)}`);
  }
  const shape = /^\((?:(\d+(?:, \d+)+)|(\d+),|)\)$/.exec(entry("shape"));
  if (shape === null) throw malformed(`its shape is ${entry("shape").slice(0, 40)}`);
  const extents = (shape[1] ?? shape[2] ?? "").split(", ").filter((extent) => extent !== "");
  return { dtype, shape: extents.map(Number), start };
}
