import { numbersOfCodes, storeCodesOf } from "../arrays/elements.js";
import type { CodeArray, FloatFormat } from "../format.js";
import { packCodes, unpackCodes } from "../scaled/pack-codes.js";

/** Decoded elements on the host: floats as float32, integers unchanged. */
export type DecodedElements =
  | Float32Array<ArrayBuffer>
  | Int32Array<ArrayBuffer>
  | Uint32Array<ArrayBuffer>;

/** Elements as stored in memory: numbers of 32 bits, or codes. */
export type ElementBytes = DecodedElements | Uint16Array<ArrayBuffer> | Uint8Array<ArrayBuffer>;

/** Memory that holds elements: a buffer, or any view of one, such as a Uint8Array, of which only its own bytes count. */
export type ElementMemory = ArrayBuffer | ArrayBufferView<ArrayBuffer>;

/** The record of a dtype of floating-point numbers. */
export interface FloatRecord {
  readonly kind: "float";
  /** Bits of an element in memory. Elements of fewer than 8 bits are dense in bytes, the first in the lowest bits. */
  readonly bits: number;
  /** The host array of decoded elements. */
  readonly Elements: Float32ArrayConstructor;
  /** Its codec and its limits. */
  readonly format: FloatFormat;
  /** Whether stores replace numbers beyond the largest one by that number instead of infinity. */
  readonly saturates: boolean;
}

/** The record of a dtype of integers. Stores truncate and saturate, and NaN becomes 0. */
export interface IntegerRecord {
  readonly kind: "int" | "uint";
  /** Bits of an element in memory. */
  readonly bits: 32;
  /** The host array of elements. */
  readonly Elements: Int32ArrayConstructor | Uint32ArrayConstructor;
  /** The smallest and the largest integer. */
  readonly range: readonly [low: number, high: number];
}

type ElementRecord = FloatRecord | IntegerRecord;

/** The record of a format. Formats of 8 bits and fewer are for storage alone, and saturate. */
export const floatRecord = (format: FloatFormat): FloatRecord => ({
  kind: "float",
  bits: format.bits,
  Elements: Float32Array,
  format,
  saturates: format.bits <= 8,
});

/** Converts a number to an integer: truncated, saturated, and 0 for NaN. */
export function toIntegerWithin([low, high]: IntegerRecord["range"], x: number): number {
  // Avoids −0, which float64 arithmetic would keep.
  return Number.isNaN(x) ? 0 : Math.min(Math.max(Math.trunc(x), low), high) + 0;
}

/** Encodes numbers as the bytes of their elements; typed arrays with these bytes are returned unchanged. */
export function encodeAs(record: ElementRecord, values: ArrayLike<number>): ElementBytes {
  const { Elements, bits } = record;
  if (bits === 32) {
    if (values instanceof Elements) return values as DecodedElements;
    const elements = new Elements(values.length);
    fill(record, elements, values);
    return elements;
  }
  const { format } = record as FloatRecord;
  const codes = encoded(record as FloatRecord, values);
  return bits < 8
    ? (packCodes(codes as Uint8Array, format as FloatFormat<Uint8Array>) as ElementBytes)
    : (codes as ElementBytes);
}

/** `length` elements at a byte offset: a view of them if they are numbers of the host, or else their numbers in a new array. */
export function decodeAs(
  record: ElementRecord,
  memory: ElementMemory,
  length: number,
  byteOffset: number,
): DecodedElements {
  const { Elements, bits } = record;
  const bytes = bytesAt("decodeElements", memory, byteOffset, bytesOf(bits, length));
  // Only views of whole elements exist.
  const { buffer, byteOffset: start } = isAligned(bits, bytes) ? bytes : bytes.slice();
  if (bits === 32) return new Elements(buffer, start, length);
  const { format } = record as FloatRecord;
  const codes =
    bits < 8
      ? unpackCodes(bytes, format as FloatFormat<Uint8Array>, length)
      : codesAt(bits, buffer, start, length);
  return numbersOfCodes(codes, format, new Float32Array(length));
}

/** Replaces float32 numbers by those that a store in the format of a record leaves. */
export function roundAs(record: FloatRecord, numbers: Float32Array): void {
  if (record.bits < 32) numbersOfCodes(encoded(record, numbers), record.format, numbers);
}

/** Writes numbers at a byte offset, as {@link encodeAs} encodes them. */
export function storeAs(
  record: ElementRecord,
  values: ArrayLike<number>,
  memory: ElementMemory,
  byteOffset: number,
): void {
  const { Elements, bits } = record;
  const { length } = values;
  const bytes = bytesAt("storeElements", memory, byteOffset, bytesOf(bits, length));
  const { buffer, byteOffset: start } = bytes;
  if (bits < 8 || !isAligned(bits, bytes)) {
    const stored = encodeAs(record, values);
    bytes.set(new Uint8Array(stored.buffer, stored.byteOffset, stored.byteLength));
  } else if (bits === 32) fill(record, new Elements(buffer, start, length), values);
  else encoded(record as FloatRecord, values, codesAt(bits, buffer, start, length));
}

const bytesOf = (bits: number, length: number): number => Math.ceil((length * bits) / 8);

const isAligned = (bits: number, { byteOffset }: Uint8Array): boolean =>
  (byteOffset * 8) % Math.max(bits, 8) === 0;

/**
 * `count` bytes of memory. A typed array made of another typed array would be a copy of its elements.
 *
 * @throws TypeError for what is neither a buffer nor a view of one. RangeError for bytes outside of it.
 */
function bytesAt(
  call: string,
  memory: ElementMemory,
  byteOffset: number,
  count: number,
): Uint8Array<ArrayBuffer> {
  const isView = ArrayBuffer.isView(memory);
  const kind = Object.prototype.toString.call(memory).slice(8, -1);
  if (!isView && kind !== "ArrayBuffer" && kind !== "SharedArrayBuffer")
    throw new TypeError(`${call}: memory is a ${kind}; pass an ArrayBuffer, or a view of one`);
  if (!(byteOffset >= 0 && count >= 0 && byteOffset + count <= memory.byteLength))
    throw new RangeError(
      `${call}: ${count} bytes from byte ${byteOffset} on do not lie in ${memory.byteLength} bytes of memory`,
    );
  return isView
    ? new Uint8Array(memory.buffer, memory.byteOffset + byteOffset, count)
    : new Uint8Array(memory, byteOffset, count);
}

function fill(record: ElementRecord, elements: DecodedElements, values: ArrayLike<number>): void {
  if (record.kind === "float" || values instanceof record.Elements) {
    elements.set(values);
    return;
  }
  for (let i = 0; i < values.length; i++)
    elements[i] = toIntegerWithin(record.range, values[i] as number);
}

const encoded = (
  { format, saturates }: FloatRecord,
  values: ArrayLike<number>,
  out?: CodeArray,
): CodeArray => storeCodesOf(values, format, saturates, out ?? format.createCodes(values.length));

const codesAt = (
  bits: number,
  buffer: ArrayBuffer,
  byteOffset: number,
  length: number,
): Uint8Array | Uint16Array =>
  bits > 8
    ? new Uint16Array(buffer, byteOffset, length)
    : new Uint8Array(buffer, byteOffset, length);
