import { dtypes, isDtype, type SafetensorsDtype } from "./dtype.js";
import { described, quote, SafetensorsError } from "./error.js";
import { maxHeaderBytes, metadataKey, prefixBytes } from "./header.js";
import { byteLengthOf, maxRank } from "./tensor.js";

/** A file to be written: its first bytes, and then the tensors in the order in which their data follows. */
export interface Layout<T> {
  /** The header with its length before it. */
  readonly header: Uint8Array<ArrayBuffer>;
  readonly tensors: readonly Placed<T>[];
  /** Of the whole file. */
  readonly byteLength: number;
}

export interface Placed<T> {
  readonly name: string;
  readonly tensor: T;
  /** Where its data starts in the file. */
  readonly byteOffset: number;
  readonly byteLength: number;
}

/** Tensors by name: a record, a Map, or any other list of pairs. */
export type Named<T> = Readonly<Record<string, T>> | Iterable<readonly [name: string, tensor: T]>;

/**
 * Lays out a file as the reference does, byte for byte: metadata first, tensors by falling alignment of their dtypes and
 * then by name, and spaces after the header up to a multiple of 8. So all data is aligned. Metadata is sorted by key,
 * which the reference leaves to chance.
 * @throws SafetensorsError when a name, a dtype, a shape or the metadata cannot be stored
 */
export function layOut<
  T extends { readonly dtype: SafetensorsDtype; readonly shape: readonly number[] },
>(named: Named<T>, metadata: Named<string> = {}): Layout<T> {
  const pairs = pairsOf(named);
  if (pairs === undefined)
    throw new TypeError(
      `the tensors are ${described(named)}: pass an object or a Map with { dtype, shape, data } by name`,
    );
  const names = new Set<string>();
  const sized = pairs.map(([name, tensor]) => {
    checkName(name, names);
    names.add(name);
    return { name, tensor, byteLength: checkedByteLength(name, tensor) };
  });
  sized.sort(
    (a, b) => rank(b.tensor.dtype) - rank(a.tensor.dtype) || compareCodePoints(a.name, b.name),
  );

  let end = 0;
  const members = metadataMember(metadata);
  const tensors = sized.map(({ name, tensor, byteLength }) => {
    const begin = end;
    end += byteLength;
    const { dtype, shape } = tensor;
    members.push(
      `${JSON.stringify(name)}:${JSON.stringify({ dtype, shape, data_offsets: [begin, end] })}`,
    );
    return { name, tensor, byteOffset: begin, byteLength };
  });
  if (end > Number.MAX_SAFE_INTEGER)
    throw new SafetensorsError("too-large", "the tensors take more than 2^53 bytes");

  const json = new TextEncoder().encode(`{${members.join()}}`);
  const headerBytes = Math.ceil(json.length / 8) * 8;
  if (headerBytes > maxHeaderBytes)
    throw new SafetensorsError(
      "header-length",
      `the header takes ${headerBytes} bytes, the limit is ${maxHeaderBytes}: shorten names or metadata, or write several files`,
    );
  const dataStart = prefixBytes + headerBytes;
  const header = new Uint8Array(dataStart).fill(0x20);
  new DataView(header.buffer).setBigUint64(0, BigInt(headerBytes), true);
  header.set(json, prefixBytes);
  return {
    header,
    tensors: tensors.map((placed) => ({ ...placed, byteOffset: dataStart + placed.byteOffset })),
    byteLength: dataStart + end,
  };
}

/** What a record, a Map or another list of pairs has by name; undefined for what is none of these. */
function pairsOf<T>(named: Named<T>): readonly (readonly [name: string, value: T])[] | undefined {
  if (typeof named !== "object" || named === null) return undefined;
  if (Symbol.iterator in named) {
    const pairs = [...(named as Iterable<readonly [string, T]>)];
    return pairs.every((pair) => Array.isArray(pair) && pair.length === 2) ? pairs : undefined;
  }
  // Buffers, dates and the like have nothing by name.
  const isRecord = Object.prototype.toString.call(named) === "[object Object]";
  return isRecord ? Object.entries(named) : undefined;
}

const order = Object.keys(dtypes);

const rank = (dtype: SafetensorsDtype): number => order.indexOf(dtype);

/** The order of UTF-8, which that of UTF-16 is not: surrogates come before U+E000 to U+FFFF. */
function compareCodePoints(a: string, b: string): number {
  const shorter = Math.min(a.length, b.length);
  let at = 0;
  while (at < shorter && a.charCodeAt(at) === b.charCodeAt(at)) at += 1;
  if (at === shorter) return a.length - b.length;
  const [unitA, unitB] = [a.charCodeAt(at), b.charCodeAt(at)];
  return Number(isSurrogate(unitA)) - Number(isSurrogate(unitB)) || unitA - unitB;
}

const isSurrogate = (unit: number): boolean => unit >= 0xd800 && unit < 0xe000;

/** With the flag u only surrogates without their other half match. */
const isUtf8 = (text: string): boolean => !/\p{Surrogate}/u.test(text);

function checkName(name: string, taken: ReadonlySet<string>): void {
  const refuse = (problem: "name" | "duplicate", fact: string): never => {
    throw new SafetensorsError(problem, fact, { tensor: String(name) });
  };
  if (typeof name !== "string") refuse("name", "a name has to be a string");
  if (name === "") refuse("name", "a name must not be empty");
  if (name === metadataKey) refuse("name", "this key is reserved: pass metadata as an option");
  if (!isUtf8(name)) refuse("name", "has half of a surrogate pair, which UTF-8 cannot hold");
  if (taken.has(name)) refuse("duplicate", "was given twice");
}

function checkedByteLength(
  name: string,
  tensor: { readonly dtype: SafetensorsDtype; readonly shape: readonly number[] },
): number {
  const at = { tensor: name };
  if (typeof tensor !== "object" || tensor === null)
    throw new SafetensorsError("data", `is ${described(tensor)}: pass { dtype, shape, data }`, at);
  const { dtype, shape } = tensor;
  if (!isDtype(dtype))
    throw new SafetensorsError(
      "dtype",
      `there is no dtype ${quote(String(dtype))}: use one of ${order.join(", ")}`,
      at,
    );
  if (!Array.isArray(shape) || shape.some((size) => !Number.isSafeInteger(size) || size < 0))
    throw new SafetensorsError("shape", `[${shape}] is no list of integers from 0`, at);
  if (shape.length > maxRank)
    throw new SafetensorsError(
      "shape",
      `has ${shape.length} dimensions, the limit is ${maxRank}`,
      at,
    );
  return byteLengthOf(dtype, shape, at);
}

/** The member `__metadata__`, unless there is none. */
function metadataMember(metadata: Named<string>): string[] {
  const given = pairsOf(metadata);
  const refuse = (problem: "metadata" | "duplicate", fact: string): never => {
    throw new SafetensorsError(problem, fact);
  };
  if (given === undefined)
    return refuse(
      "metadata",
      `the metadata is ${described(metadata)}: pass an object or a Map with text by key`,
    );
  const numeric = given.find(([key]) => typeof key !== "string");
  if (numeric)
    refuse("metadata", `the key ${described(numeric[0])} of the metadata is no string: use text`);
  const pairs = [...given].sort(([a], [b]) => compareCodePoints(a, b));
  const twice = pairs.find(([key], i) => key === pairs[i + 1]?.[0]);
  if (twice) refuse("duplicate", `the metadata has ${quote(twice[0])} twice: give it once`);
  for (const [key, value] of pairs) {
    if (typeof value !== "string")
      refuse(
        "metadata",
        `the value of ${quote(key)} is no string: store it as JSON.stringify() of it`,
      );
    if (!isUtf8(key) || !isUtf8(value))
      refuse("metadata", `${quote(key)} has half of a surrogate pair, which UTF-8 cannot hold`);
  }
  if (pairs.length === 0) return [];
  const members = pairs.map(([key, value]) => `${JSON.stringify(key)}:${JSON.stringify(value)}`);
  return [`${JSON.stringify(metadataKey)}:{${members.join()}}`];
}
