import { float16 } from "../float16.js";
import type { CodeArray, EncodeOptions, FloatFormat } from "../format.js";

/** Options of bulk encoding: stochastic rounding takes a seed instead of random bits. */
export interface EncodeArrayOptions extends Omit<EncodeOptions, "bits"> {
  /** `"stochastic"` needs it, no other rounding takes it: the key of Philox4x32-10, a safe integer from 0 on. */
  readonly seed?: number;
  /** Another stream of the same seed, such as the number of the step: a safe integer from 0 on, default 0. */
  readonly offset?: number;
}

/** The names of {@link EncodeArrayOptions}. */
export const encodeArrayOptions: readonly (keyof EncodeArrayOptions)[] = [
  ...(["rounding", "saturate", "seed", "offset"] as const),
];

/** Marks arrays of numbers that are stored as codes, and names their format. */
export const elementFormat: unique symbol = /* @__PURE__ */ Symbol.for("@halfstep/elementFormat");

/** The interface of `Float16Array` and `BFloat16Array` for bulk conversions. */
interface StoredAsCodes {
  readonly [elementFormat]: FloatFormat<Uint16Array>;
  readonly codes: Uint16Array;
}

/** Numbers as bulk conversions accept them. */
export type Numbers = ArrayLike<number> | StoredAsCodes;

/** Numbers by how they are read. */
export type Source =
  | { readonly kind: "float32"; readonly values: Float32Array }
  | { readonly kind: "float64"; readonly values: Float64Array }
  | { readonly kind: "codes"; readonly values: Uint16Array; readonly format: FloatFormat }
  | { readonly kind: "numbers"; readonly values: ArrayLike<number> };

/**
 * @throws TypeError if `values` is no array of numbers, or its buffer is detached.
 */
export function sourceOf(operation: string, values: Numbers): Source {
  switch (viewKind(values)) {
    case "Float32Array":
      checkAttached(operation, "values", values as Float32Array);
      return { kind: "float32", values: values as Float32Array };
    case "Float64Array":
      checkAttached(operation, "values", values as Float64Array);
      return { kind: "float64", values: values as Float64Array };
    case "Float16Array":
      checkAttached(operation, "values", values as unknown as ArrayBufferView);
      return {
        kind: "codes",
        values: codesOf(values as unknown as ArrayBufferView),
        format: float16,
      };
    case "BigInt64Array":
    case "BigUint64Array":
      throw new TypeError(
        `${operation}: values are a ${viewKind(values)}, but formats hold numbers; convert them with Float64Array.from(values, Number)`,
      );
    case undefined:
      break;
    default:
      if (!ArrayBuffer.isView(values) || "length" in values) {
        checkAttached(operation, "values", values as unknown as ArrayBufferView);
        return { kind: "numbers", values: values as ArrayLike<number> };
      }
  }
  if (typeof values === "object" && values !== null) {
    if (elementFormat in values) {
      return { kind: "codes", values: values.codes, format: values[elementFormat] };
    }
    const { length } = values as ArrayLike<number>;
    if (Number.isInteger(length) && length >= 0) return { kind: "numbers", values };
  }
  throw new TypeError(
    `${operation}: values are ${described(values)}; pass a Float32Array, a Float64Array or an array of numbers`,
  );
}

/**
 * @throws TypeError if `array` is not of the kind that the format's codes have, or its buffer is detached.
 */
export function checkCodeArray(
  operation: string,
  name: string,
  array: CodeArray,
  format: FloatFormat,
): void {
  const { bits } = format;
  const kind = bits > 16 ? "Uint32Array" : bits > 8 ? "Uint16Array" : "Uint8Array";
  checkKind(operation, name, array, [kind], `codes of ${format.name}`);
}

/**
 * @throws TypeError if `out` is no typed array of these kinds, or its buffer is detached.
 */
export function checkNumberArray(
  operation: string,
  out: ArrayBufferView,
  kinds: readonly string[],
): void {
  checkKind(operation, "out", out, kinds, "numbers");
}

/**
 * @param purpose what needs one of these kinds, for the message.
 * @throws TypeError if `array` is no typed array of these kinds, or its buffer is detached.
 */
export function checkKind(
  operation: string,
  name: string,
  array: ArrayBufferView,
  kinds: readonly string[],
  purpose: string,
): void {
  const kind = viewKind(array);
  if (kind === undefined || !kinds.includes(kind)) {
    throw new TypeError(
      `${operation}: ${name} is ${described(array)}; ${purpose} need a ${kinds.join(" or ")}`,
    );
  }
  checkAttached(operation, name, array);
}

/**
 * @throws RangeError if `out` is shorter than `length`.
 */
export function checkRoom(operation: string, length: number, out: ArrayLike<number>): void {
  if (out.length < length) {
    throw new RangeError(
      `${operation}: out holds ${out.length} elements, but there are ${length}; pass one at least as long, or none`,
    );
  }
}

/** @throws TypeError if one of `count` elements from `from` on is not a number. */
export function checkElement(operation: string, value: unknown, index: number): void {
  if (typeof value !== "number") {
    throw new TypeError(
      `${operation}: element ${index} is ${described(value)}, not a number; convert it with Number()`,
    );
  }
}

/** Any typed array: each has a `slice` of its own type. */
type Sliceable = CodeArray | Float32Array | Float64Array | Int32Array;

/**
 * The array, or a copy where writing `out` from its start on would overwrite elements of it that are not yet read.
 */
export function unaliased<T extends Sliceable>(array: T, out: ArrayBufferView): T {
  if (array.buffer !== out.buffer) return array;
  const isBehind = out.byteOffset <= array.byteOffset && bytesOf(out) <= bytesOf(array);
  const isApart =
    out.byteOffset >= array.byteOffset + array.byteLength ||
    array.byteOffset >= out.byteOffset + out.byteLength;
  return isBehind || isApart ? array : (array.slice() as T);
}

/** The source, its values copied where `unaliased` says so. */
export function separate(source: Source, out: ArrayBufferView): Source {
  switch (source.kind) {
    case "float32":
      return { kind: "float32", values: unaliased(source.values, out) };
    case "float64":
      return { kind: "float64", values: unaliased(source.values, out) };
    case "codes":
      return { ...source, values: unaliased(source.values, out) };
    case "numbers":
      return ArrayBuffer.isView(source.values)
        ? { kind: "numbers", values: unaliased(source.values as Int32Array, out) }
        : source;
  }
}

const bytesOf = (array: ArrayBufferView): number =>
  (array as unknown as { BYTES_PER_ELEMENT: number }).BYTES_PER_ELEMENT;

/** Its name, from whatever realm; subclasses such as Node's Buffer have their base's. */
const viewKind = (value: unknown): string | undefined =>
  ArrayBuffer.isView(value)
    ? String((value as unknown as { [Symbol.toStringTag]: string })[Symbol.toStringTag])
    : undefined;

const codesOf = (array: ArrayBufferView): Uint16Array =>
  new Uint16Array(array.buffer, array.byteOffset, array.byteLength / 2);

/** A detached array has no elements, and only making another view of its buffer tells it from an empty one. */
function checkAttached(operation: string, name: string, array: ArrayBufferView): void {
  if (array.byteLength > 0) return;
  try {
    new Uint8Array(array.buffer);
  } catch (cause) {
    throw new TypeError(
      `${operation}: the buffer of ${name} is detached; convert before it is transferred, or pass the array that received it`,
      { cause },
    );
  }
}

function described(value: unknown): string {
  if (value === null || value === undefined) return String(value);
  if (typeof value !== "object") return `a ${typeof value}`;
  return `a ${viewKind(value) ?? Object.prototype.toString.call(value).slice(8, -1)}`;
}
