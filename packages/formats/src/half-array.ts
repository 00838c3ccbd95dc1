import { elementFormat, type Numbers } from "./arrays/arguments.js";
import { decodeArray, encodeArray } from "./arrays.js";
import type { FloatFormat } from "./format.js";

/**
 * An array of 16-bit numbers: the common interface of `Float16Array` and `BFloat16Array` on every engine. Elements are read
 * with `get` and written with `set`, rounded to nearest even.
 */
export interface HalfArray extends Iterable<number> {
  readonly length: number;
  readonly BYTES_PER_ELEMENT: number;
  readonly buffer: ArrayBufferLike;
  readonly byteOffset: number;
  readonly byteLength: number;
  /** The codes, as a view of the same memory. */
  readonly codes: Uint16Array;
  /** The format of the elements. */
  readonly [elementFormat]: FloatFormat<Uint16Array>;
  /** @throws RangeError if there is no element at `index`. */
  get(index: number): number;
  /**
   * Writes one element, or many from `offset` (default 0) on.
   * @throws RangeError if they do not fit, TypeError if they are not numbers.
   */
  set(index: number, value: number): void;
  set(values: Numbers, offset?: number): void;
  /** The element, counted from the end if `index` is negative; undefined if there is none. */
  at(index: number): number | undefined;
  /** From `start` (default 0) to before `end` (default length); negative ones count from the end. */
  fill(value: number, start?: number, end?: number): this;
  /** A copy of the elements from `start` to before `end`. */
  slice(start?: number, end?: number): HalfArray;
  /** A view of the same memory. */
  subarray(start?: number, end?: number): HalfArray;
  /** All elements as float32, in `out` or a new array. */
  toFloat32Array(out?: Float32Array): Float32Array;
}

/** The constructor of a `HalfArray`. */
export interface HalfArrayConstructor {
  readonly BYTES_PER_ELEMENT: number;
  /** Zeros. */
  new (length?: number): HalfArray;
  /** The numbers, rounded. */
  new (values: Numbers): HalfArray;
  /**
   * A view of codes in memory.
   * @throws RangeError if offset or length are not whole elements, or do not fit.
   */
  new (buffer: ArrayBufferLike, byteOffset?: number, length?: number): HalfArray;
  /** Makes an array from the rounded numbers of an array or iterable, after `map` if given. */
  from(
    values: Numbers | Iterable<number>,
    map?: (value: number, index: number) => number,
  ): HalfArray;
  of(...values: number[]): HalfArray;
}

/** The plain class, over a Uint16Array of codes. */
export function plainHalfArray(
  name: string,
  format: FloatFormat<Uint16Array>,
): HalfArrayConstructor {
  const Plain = class implements HalfArray {
    static readonly BYTES_PER_ELEMENT = 2;
    static from(...given: Parameters<HalfArrayConstructor["from"]>): HalfArray {
      return new Plain(listOf(...given));
    }
    static of(...values: number[]): HalfArray {
      return new Plain(values);
    }

    readonly BYTES_PER_ELEMENT = 2;
    readonly [elementFormat]: FloatFormat<Uint16Array> = format;
    readonly codes: Uint16Array;

    constructor(
      first: number | Numbers | ArrayBufferLike = 0,
      byteOffset?: number,
      length?: number,
    ) {
      if (isBuffer(first)) this.codes = new Uint16Array(first, byteOffset, length);
      else if (typeof first === "number") this.codes = new Uint16Array(first);
      else this.codes = encodeArray(first, format);
    }
    get [Symbol.toStringTag](): string {
      return name;
    }
    get length(): number {
      return this.codes.length;
    }
    get buffer(): ArrayBufferLike {
      return this.codes.buffer;
    }
    get byteOffset(): number {
      return this.codes.byteOffset;
    }
    get byteLength(): number {
      return this.codes.byteLength;
    }
    get(index: number): number {
      return format.decode(existing(name, this.codes, index));
    }
    set(indexOrValues: number | Numbers, valueOrOffset?: number): void {
      setElements(name, this.codes, format, indexOrValues, valueOrOffset);
    }
    at(index: number): number | undefined {
      const code = this.codes.at(index);
      return code === undefined ? undefined : format.decode(code);
    }
    fill(value: number, start?: number, end?: number): this {
      this.codes.fill(format.encode(value), start, end);
      return this;
    }
    slice(start?: number, end?: number): HalfArray {
      return viewOf(Plain, this.codes.slice(start, end));
    }
    subarray(start?: number, end?: number): HalfArray {
      return viewOf(Plain, this.codes.subarray(start, end));
    }
    toFloat32Array(out?: Float32Array): Float32Array {
      return decodeArray(this.codes, format, out);
    }
    *[Symbol.iterator](): Iterator<number> {
      for (const code of this.codes) yield format.decode(code);
    }
  };
  Object.defineProperty(Plain, "name", { value: name });
  return Plain;
}

const viewOf = (Made: HalfArrayConstructor, codes: Uint16Array): HalfArray =>
  new Made(codes.buffer, codes.byteOffset, codes.length);

/** Whether `value` is an ArrayBuffer or a SharedArrayBuffer, of any realm. */
export const isBuffer = (value: unknown): value is ArrayBufferLike =>
  /^\[object (Shared)?ArrayBuffer\]$/.test(Object.prototype.toString.call(value));

/** Makes an array of values that may be iterable only, and maps them. */
export function listOf(...[values, map]: Parameters<HalfArrayConstructor["from"]>): Numbers {
  if (map) return Array.from(values as Iterable<number>, map);
  return "length" in values || elementFormat in values ? values : Array.from(values);
}

/**
 * The element at `index`.
 * @throws RangeError if there is none.
 */
export function existing(name: string, array: ArrayLike<number>, index: number): number {
  const element = typeof index === "number" ? array[index] : undefined;
  if (element === undefined) {
    throw new RangeError(
      `${name}: there is no element ${String(index)} among ${array.length}; pass an integer from 0 on`,
    );
  }
  return element;
}

/** `HalfArray.set` on codes. */
export function setElements(
  name: string,
  codes: Uint16Array,
  format: FloatFormat<Uint16Array>,
  indexOrValues: number | Numbers,
  valueOrOffset?: number,
): void {
  if (typeof indexOrValues === "number") {
    existing(name, codes, indexOrValues);
    codes[indexOrValues] = format.encode(valueOrOffset as number);
    return;
  }
  const { length } = elementFormat in indexOrValues ? indexOrValues.codes : indexOrValues;
  const offset = valueOrOffset ?? 0;
  if (!(Number.isInteger(offset) && offset >= 0 && offset + length <= codes.length)) {
    throw new RangeError(
      `${name}: ${length} elements from ${String(offset)} on do not fit into ${codes.length}; pass fewer, or a smaller offset`,
    );
  }
  encodeArray(indexOrValues, format, codes.subarray(offset, offset + length));
}
