import { decodeArray, encodeArray } from "@halfstep/formats";
import { dtypes, isDType, isNarrow } from "@halfstep/formats/dtypes";
import type { SafetensorsTensor } from "@halfstep/safetensors";
import { dtypeOf, safetensorsDtypeOf } from "../weights/safetensors-dtype.js";

/** A state in two parts: JSON with references, and the referenced arrays. */
export interface StateTree {
  readonly json: unknown;
  readonly tensors: Readonly<Record<string, SafetensorsTensor>>;
}

/** Levels of objects and lists. Deeper states and files are refused before the stack overflows. */
const deepest = 64;

const arrayDtypes = {
  Float32Array: "F32",
  Float64Array: "F64",
  Int32Array: "I32",
  Uint32Array: "U32",
  Int16Array: "I16",
  Uint16Array: "U16",
  Int8Array: "I8",
  Uint8Array: "U8",
} as const;

/**
 * Splits a state of plain objects, lists, typed arrays and JSON values into JSON and tensors, which are named by their
 * path: `groups.0.state.weight.expAvg`. An object of `shape`, `dtype` and `data`, as in the state dict of a module, becomes
 * one tensor of that name, shape and dtype. Numbers that JSON lacks are kept: NaN, infinities and -0.
 *
 * @throws TypeError that names the path of a value that cannot be saved
 */
export function splitTree(state: unknown): StateTree {
  const tensors: Record<string, SafetensorsTensor> = Object.create(null);
  const place = (path: readonly string[], tensor: SafetensorsTensor): string => {
    const wanted = path.join(".") || "value";
    let name = wanted;
    for (let again = 2; name in tensors; again++) name = `${wanted}#${again}`;
    tensors[name] = tensor;
    return name;
  };
  const split = (value: unknown, path: readonly string[]): unknown => {
    const refuse = (what: string): never => {
      throw new TypeError(
        `a checkpoint cannot hold ${path.join(".") || "this state"}: it is ${what}`,
      );
    };
    if (path.length > deepest) refuse(`more than ${deepest} levels deep`);
    if (value === null || typeof value === "boolean" || typeof value === "string") return value;
    if (typeof value === "number")
      return Number.isFinite(value) && !Object.is(value, -0)
        ? value
        : { $number: Object.is(value, -0) ? "-0" : String(value) };
    if (typeof value !== "object") return refuse(`a ${typeof value}`);
    if (ArrayBuffer.isView(value)) {
      const tensor = plainTensor(value) ?? refuse(`a ${value[Symbol.toStringTag as never]}`);
      return { $array: place(path, tensor) };
    }
    if (Array.isArray(value)) return value.map((each, i) => split(each, [...path, String(i)]));
    if (isSavedTensor(value))
      return { $tensor: place(path, storedTensor(value)), dtype: value.dtype };
    const prototype = Object.getPrototypeOf(value);
    if (prototype !== null && prototype !== Object.prototype)
      refuse(`a ${value.constructor.name}, not plain data`);
    return Object.fromEntries(
      Object.entries(value).flatMap(([key, each]) => {
        if (key.startsWith("$"))
          refuse(`an object with the key ${JSON.stringify(key)}: such keys are reserved`);
        return each === undefined ? [] : [[key, split(each, [...path, key])]];
      }),
    );
  };
  return { json: split(state, []), tensors };
}

/**
 * Splits the states of a checkpoint by name.
 * @throws TypeError where a state cannot be saved, or has a name that is not for states
 */
export const splitParts = (
  parts: Readonly<Record<string, unknown>>,
): readonly (readonly [name: string, tree: StateTree])[] =>
  Object.entries(parts)
    .filter(([, state]) => state !== undefined)
    .map(([name, state]) => {
      if (!/^[\w-]+$/.test(name) || name === "manifest" || name === "state")
        throw new TypeError(
          `a part of a checkpoint cannot be called ${JSON.stringify(name)}: use letters, digits, _ and -, and neither "state" nor "manifest"`,
        );
      return [name, splitTree(state)];
    });

/**
 * Joins a state again. Arrays are views of those of the tensors.
 * @throws TypeError where JSON and tensors do not match
 */
export function joinTree({ json, tensors }: StateTree): unknown {
  const used = new Set<string>();
  const tensorOf = (name: unknown): SafetensorsTensor => {
    const tensor =
      typeof name === "string" && Object.hasOwn(tensors, name) ? tensors[name] : undefined;
    if (!tensor)
      throw new TypeError(`refers to a tensor ${JSON.stringify(name)}, which is not there`);
    used.add(name as string);
    return tensor;
  };
  const join = (value: unknown, depth: number): unknown => {
    if (depth > deepest) throw new TypeError(`is more than ${deepest} levels deep`);
    if (typeof value !== "object" || value === null) return value;
    if (Array.isArray(value)) return value.map((each) => join(each, depth + 1));
    if ("$number" in value) {
      // Accepts only strings: other values would be converted to one.
      if (typeof value.$number !== "string") throw new TypeError("has a number that is no text");
      return Number(value.$number);
    }
    if ("$array" in value) return tensorOf(value.$array).data;
    if ("$tensor" in value)
      return savedTensor(tensorOf(value.$tensor), "dtype" in value ? value.dtype : undefined);
    return Object.fromEntries(
      Object.entries(value).map(([key, each]) => [key, join(each, depth + 1)]),
    );
  };
  const state = join(json, 0);
  const unused = Object.keys(tensors).find((name) => !used.has(name));
  if (unused !== undefined)
    throw new TypeError(`has no place for the tensor ${JSON.stringify(unused)}`);
  return state;
}

/** A tensor in a state dict of a module: values of 16-bit and 8-bit dtypes are decoded. */
interface SavedTensor {
  readonly shape: readonly number[];
  readonly dtype: string;
  readonly data: ArrayBufferView;
}

const isSavedTensor = (value: object): value is SavedTensor =>
  Object.keys(value).length === 3 &&
  "shape" in value &&
  Array.isArray(value.shape) &&
  "dtype" in value &&
  typeof value.dtype === "string" &&
  "data" in value &&
  ArrayBuffer.isView(value.data);

function plainTensor(data: ArrayBufferView): SafetensorsTensor | undefined {
  const kind = (data as Uint8Array)[Symbol.toStringTag];
  const dtype = Object.hasOwn(arrayDtypes, kind)
    ? arrayDtypes[kind as keyof typeof arrayDtypes]
    : undefined;
  return (
    dtype && ({ dtype, shape: [(data as Uint8Array).length], data } as unknown as SafetensorsTensor)
  );
}

function storedTensor({ shape, dtype, data }: SavedTensor): SafetensorsTensor {
  // A runtime with float64 arithmetic does not round: its numbers are stored unchanged.
  if (isDType(dtype) && isNarrow(dtype) && data instanceof Float32Array)
    return {
      dtype: safetensorsDtypeOf(dtype),
      shape,
      data: encodeArray(data, dtypes[dtype].format),
    } as SafetensorsTensor;
  const plain = plainTensor(data);
  if (!plain)
    throw new TypeError(
      `a checkpoint cannot hold a tensor of ${dtype} as ${data.constructor.name}`,
    );
  return Object.assign(plain, { shape });
}

function savedTensor(tensor: SafetensorsTensor, dtype: unknown): SavedTensor {
  if (typeof dtype !== "string") throw new TypeError("has a tensor without a dtype");
  const { shape } = tensor;
  const stored = dtypeOf(tensor.dtype);
  if (!stored || !isNarrow(stored)) return { shape, dtype, data: tensor.data };
  const codes = tensor.data as Uint8Array | Uint16Array;
  return { shape, dtype, data: decodeArray(codes, dtypes[stored].format) };
}
