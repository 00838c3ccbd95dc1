import { bytesOf } from "./checks.js";
import { DataError } from "./error.js";

/** Element types of IDX files, by the third byte of their magic number. */
const elementTypes = {
  8: "uint8",
  9: "int8",
  11: "int16",
  12: "int32",
  13: "float32",
  14: "float64",
} as const;

interface IdxData {
  readonly uint8: Uint8Array;
  readonly int8: Int8Array;
  readonly int16: Int16Array;
  readonly int32: Int32Array;
  readonly float32: Float32Array;
  readonly float64: Float64Array;
}

type IdxElement = keyof IdxData;

/** The content of an IDX file. `data` is row-major and has as many elements as the product of `shape`. */
export type IdxArray = {
  readonly [E in IdxElement]: {
    readonly dtype: E;
    readonly shape: readonly number[];
    readonly data: IdxData[E];
  };
}[IdxElement];

const elementBytes = { uint8: 1, int8: 1, int16: 2, int32: 4, float32: 4, float64: 8 } as const;

/** The most bytes that the header of an IDX file has: 255 dimensions. */
export const longestIdxHeader: number = 4 + 4 * 255;

/** What the header of an IDX file says of the rest. */
export interface IdxLayout {
  readonly dtype: IdxElement;
  readonly shape: readonly number[];
  /** Bytes of the header. */
  readonly header: number;
  /** Bytes of the whole file. */
  readonly bytes: number;
}

/** What to do about a file that is broken, or another's. */
const another = "download it again";

/**
 * Reads the header of an IDX file.
 * @param start the first bytes of the file: all, or {@link longestIdxHeader}
 * @throws DataError when the magic number or the element type is wrong, or the file ends inside its header
 */
export function idxLayout(start: Uint8Array, name: string): IdxLayout {
  const fail = (problem: string): never => {
    throw new DataError(name, `${problem}: ${another}`);
  };
  if (start.length < 4) fail(`${start.length} bytes are too few for an IDX file`);
  const [zero0, zero1, typeCode, rank] = start as Uint8Array & [number, number, number, number];
  if (zero0 === 0x1f && zero1 === 0x8b)
    throw new DataError(name, "is gzip-compressed: decompress it first");
  if (zero0 !== 0 || zero1 !== 0) {
    const found = [...start.subarray(0, 4)].map((byte) => byte.toString(16).padStart(2, "0"));
    fail(`is not an IDX file: it starts with ${found.join(" ")} where 00 00 is expected`);
  }
  const dtype: IdxElement =
    elementTypes[typeCode as keyof typeof elementTypes] ??
    fail(`element type 0x${typeCode.toString(16).padStart(2, "0")} does not exist in IDX`);
  if (rank === 0) fail("has no dimensions");
  const header = 4 + 4 * rank;
  if (start.length < header) fail(`ends inside its header: ${start.length} bytes of ${header}`);
  const view = new DataView(start.buffer, start.byteOffset, start.byteLength);
  const shape = Array.from({ length: rank }, (_, axis) => view.getUint32(4 + 4 * axis));
  return { dtype, shape, header, bytes: header + elementsOf(shape) * elementBytes[dtype] };
}

/** Their number may be beyond all numbers; that of an array without elements is 0 whatever its other dimensions are. */
const elementsOf = (shape: readonly number[]): number =>
  shape.includes(0) ? 0 : shape.reduce((product, size) => product * size, 1);

/**
 * Compares what a header says with the length of the file.
 * @throws DataError where they differ
 */
export function requireIdxLength(
  { dtype, shape, bytes }: IdxLayout,
  found: number,
  name: string,
): void {
  if (found === bytes) return;
  const fault = found < bytes ? "is truncated" : "has bytes after its data";
  const sizes = shape.length > 8 ? `${shape.slice(0, 8)},…` : shape;
  throw new DataError(
    name,
    `${fault}: shape [${sizes}] of ${dtype} takes ${bytes} bytes, found ${found}: ${another}`,
  );
}

/**
 * Reads an IDX file (the format of MNIST: http://yann.lecun.com/exdb/mnist/): two zero bytes, an element type, the number
 * of dimensions, each dimension as a big-endian u32, then the elements, big-endian, and nothing after them.
 *
 * Single-byte data is a view of `bytes`, not a copy.
 *
 * @param name stands for the bytes in error messages
 * @throws DataError when the magic number, the element type or the length is wrong; TypeError for what are no bytes
 *
 * @example
 * readIdx(new Uint8Array([0, 0, 8, 1, 0, 0, 0, 2, 7, 9])); // { dtype: "uint8", shape: [2], data: Uint8Array [7, 9] }
 */
export const readIdx = (bytes: ArrayBufferLike | Uint8Array, name = "IDX data"): IdxArray => {
  const file = bytesOf("readIdx", bytes);
  const layout = idxLayout(file, name);
  requireIdxLength(layout, file.length, name);
  const { dtype, shape, header } = layout;
  const view = new DataView(file.buffer, file.byteOffset, file.byteLength);
  const count = elementsOf(shape);
  const at = (index: number): number => header + index * elementBytes[dtype];
  switch (dtype) {
    case "uint8":
      return { dtype, shape, data: file.subarray(header) };
    case "int8":
      return { dtype, shape, data: new Int8Array(file.buffer, file.byteOffset + header, count) };
    case "int16":
      return {
        dtype,
        shape,
        data: new Int16Array(count).map((_, i) => view.getInt16(at(i))),
      };
    case "int32":
      return {
        dtype,
        shape,
        data: new Int32Array(count).map((_, i) => view.getInt32(at(i))),
      };
    case "float32":
      return {
        dtype,
        shape,
        data: new Float32Array(count).map((_, i) => view.getFloat32(at(i))),
      };
    case "float64":
      return {
        dtype,
        shape,
        data: new Float64Array(count).map((_, i) => view.getFloat64(at(i))),
      };
  }
};
