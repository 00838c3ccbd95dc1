import { elementFormat, type Numbers } from "./arrays/arguments.js";
import { decodeArray, encodeArray } from "./arrays.js";
import { float16 } from "./float16.js";
import type { FloatFormat } from "./format.js";
import {
  existing,
  type HalfArray,
  type HalfArrayConstructor,
  isBuffer,
  listOf,
  plainHalfArray,
  setElements,
} from "./half-array.js";

/**
 * An array of float16. Where the engine has a `Float16Array`, this is a subclass of it, so that its instances are what other
 * code expects; elsewhere it is a plain class over codes. In both cases use it through `HalfArray`, which works on every
 * engine.
 */
export const Float16Array: HalfArrayConstructor = /* @__PURE__ */ (() => {
  const engine = (globalThis as { Float16Array?: EngineArrayConstructor }).Float16Array;
  return engine ? engineHalfArray(engine) : plainHalfArray("Float16Array", float16);
})();

/** The part of the engine's class that is used here; the rest is inherited. */
interface EngineArray extends Iterable<number> {
  readonly length: number;
  readonly BYTES_PER_ELEMENT: number;
  readonly buffer: ArrayBufferLike;
  readonly byteOffset: number;
  readonly byteLength: number;
  at(index: number): number | undefined;
  fill(value: number, start?: number, end?: number): this;
}
type EngineArrayConstructor = new (
  first: number | ArrayBufferLike,
  byteOffset?: number,
  length?: number,
) => EngineArray;

function engineHalfArray(engine: EngineArrayConstructor): HalfArrayConstructor {
  const name = "Float16Array";
  const Made = class extends engine implements HalfArray {
    static readonly BYTES_PER_ELEMENT = 2;
    static from(...given: Parameters<HalfArrayConstructor["from"]>): HalfArray {
      return new Made(listOf(...given));
    }
    static of(...values: number[]): HalfArray {
      return new Made(values);
    }

    constructor(
      first: number | Numbers | ArrayBufferLike = 0,
      byteOffset?: number,
      length?: number,
    ) {
      if (isBuffer(first)) super(first, byteOffset, length);
      else if (typeof first === "number") super(first);
      else super(encodeArray(first, float16).buffer);
    }
    get [elementFormat](): FloatFormat<Uint16Array> {
      return float16;
    }
    get codes(): Uint16Array {
      return new Uint16Array(this.buffer, this.byteOffset, this.length);
    }
    get(index: number): number {
      return existing(name, this as unknown as ArrayLike<number>, index);
    }
    set(indexOrValues: number | Numbers, valueOrOffset?: number): void {
      setElements(name, this.codes, float16, indexOrValues, valueOrOffset);
    }
    override fill(value: number, start?: number, end?: number): this {
      return super.fill(float16.round(value), start, end);
    }
    declare slice: (start?: number, end?: number) => HalfArray;
    declare subarray: (start?: number, end?: number) => HalfArray;
    toFloat32Array(out?: Float32Array): Float32Array {
      return decodeArray(this.codes, float16, out);
    }
  };
  Object.defineProperty(Made, "name", { value: name });
  return Made;
}
