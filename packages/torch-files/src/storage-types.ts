import type { SafetensorsDtype } from "@halfstep/safetensors";

/** How elements lie in memory. */
export interface ElementType {
  readonly dtype: SafetensorsDtype;
  /** Of one element. */
  readonly bytes: 1 | 2 | 4 | 8;
  /** The array of `@halfstep/safetensors` for the dtype. */
  readonly array: ElementArray;
}

interface ElementArray {
  new (buffer: ArrayBuffer): ArrayBufferView;
}

const type = (
  dtype: SafetensorsDtype,
  bytes: ElementType["bytes"],
  array: ElementArray,
): ElementType => ({ dtype, bytes, array });

const types = {
  float64: type("F64", 8, Float64Array),
  float32: type("F32", 4, Float32Array),
  float16: type("F16", 2, Uint16Array),
  bfloat16: type("BF16", 2, Uint16Array),
  complex64: type("C64", 8, Float32Array),
  int64: type("I64", 8, BigInt64Array),
  int32: type("I32", 4, Int32Array),
  int16: type("I16", 2, Int16Array),
  int8: type("I8", 1, Int8Array),
  uint64: type("U64", 8, BigUint64Array),
  uint32: type("U32", 4, Uint32Array),
  uint16: type("U16", 2, Uint16Array),
  uint8: type("U8", 1, Uint8Array),
  bool: type("BOOL", 1, Uint8Array),
  float8_e4m3fn: type("F8_E4M3", 1, Uint8Array),
  float8_e5m2: type("F8_E5M2", 1, Uint8Array),
  float8_e4m3fnuz: type("F8_E4M3FNUZ", 1, Uint8Array),
  float8_e5m2fnuz: type("F8_E5M2FNUZ", 1, Uint8Array),
  float8_e8m0fnu: type("F8_E8M0", 1, Uint8Array),
} as const;

const storages: Readonly<Record<string, keyof typeof types>> = {
  DoubleStorage: "float64",
  FloatStorage: "float32",
  HalfStorage: "float16",
  BFloat16Storage: "bfloat16",
  ComplexFloatStorage: "complex64",
  LongStorage: "int64",
  IntStorage: "int32",
  ShortStorage: "int16",
  CharStorage: "int8",
  ByteStorage: "uint8",
  BoolStorage: "bool",
  // Bytes, for tensors that name their dtype.
  UntypedStorage: "uint8",
};

/** The elements of a class of storages, by its name: "FloatStorage". */
export function storageTypeOf(name: string): ElementType | undefined {
  const dtype = Object.hasOwn(storages, name) ? storages[name] : undefined;
  return dtype && types[dtype];
}

/** The elements of a dtype of torch's, by its name: "float8_e4m3fn". */
export const elementTypeOf = (name: string): ElementType | undefined =>
  Object.hasOwn(types, name) ? types[name as keyof typeof types] : undefined;
