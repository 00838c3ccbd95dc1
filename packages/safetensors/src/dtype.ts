/** The array that holds the elements of each dtype. */
export interface SafetensorsData {
  /** One byte an element: 0 or 1. */
  readonly BOOL: Uint8Array;
  /** Two elements a byte. */
  readonly F4: Uint8Array;
  /** Four elements in three bytes. */
  readonly F6_E2M3: Uint8Array;
  readonly F6_E3M2: Uint8Array;
  readonly U8: Uint8Array;
  readonly I8: Int8Array;
  readonly F8_E5M2: Uint8Array;
  readonly F8_E4M3: Uint8Array;
  readonly F8_E8M0: Uint8Array;
  readonly F8_E4M3FNUZ: Uint8Array;
  readonly F8_E5M2FNUZ: Uint8Array;
  readonly I16: Int16Array;
  readonly U16: Uint16Array;
  /** Codes, as `@halfstep/formats` takes them. */
  readonly F16: Uint16Array;
  readonly BF16: Uint16Array;
  readonly I32: Int32Array;
  readonly U32: Uint32Array;
  readonly F32: Float32Array;
  /** Real and imaginary parts in turn: twice as long as the tensor has elements. */
  readonly C64: Float32Array;
  readonly F64: Float64Array;
  readonly I64: BigInt64Array;
  readonly U64: BigUint64Array;
}

/** A dtype as safetensors files spell it. */
export type SafetensorsDtype = keyof SafetensorsData;

/** The same dtypes as the other Halfstep packages spell them, after torch. */
export const dtypeNames = {
  BOOL: "bool",
  F4: "float4e2m1fn",
  F6_E2M3: "float6e2m3fn",
  F6_E3M2: "float6e3m2fn",
  U8: "uint8",
  I8: "int8",
  F8_E5M2: "float8e5m2",
  F8_E4M3: "float8e4m3fn",
  F8_E8M0: "float8e8m0fnu",
  F8_E4M3FNUZ: "float8e4m3fnuz",
  F8_E5M2FNUZ: "float8e5m2fnuz",
  I16: "int16",
  U16: "uint16",
  F16: "float16",
  BF16: "bfloat16",
  I32: "int32",
  U32: "uint32",
  F32: "float32",
  C64: "complex64",
  F64: "float64",
  I64: "int64",
  U64: "uint64",
} as const;

interface DataConstructor<A> {
  readonly name: string;
  readonly BYTES_PER_ELEMENT: number;
  new (buffer: ArrayBufferLike, byteOffset: number, length: number): A;
}

interface DtypeLayout<A> {
  readonly bits: number;
  readonly array: DataConstructor<A>;
}

/** By growing alignment, in the order of the reference's `Dtype`: files are sorted by it, backwards. */
export const dtypes: { readonly [D in SafetensorsDtype]: DtypeLayout<SafetensorsData[D]> } = {
  BOOL: { bits: 8, array: Uint8Array },
  F4: { bits: 4, array: Uint8Array },
  F6_E2M3: { bits: 6, array: Uint8Array },
  F6_E3M2: { bits: 6, array: Uint8Array },
  U8: { bits: 8, array: Uint8Array },
  I8: { bits: 8, array: Int8Array },
  F8_E5M2: { bits: 8, array: Uint8Array },
  F8_E4M3: { bits: 8, array: Uint8Array },
  F8_E8M0: { bits: 8, array: Uint8Array },
  F8_E4M3FNUZ: { bits: 8, array: Uint8Array },
  F8_E5M2FNUZ: { bits: 8, array: Uint8Array },
  I16: { bits: 16, array: Int16Array },
  U16: { bits: 16, array: Uint16Array },
  F16: { bits: 16, array: Uint16Array },
  BF16: { bits: 16, array: Uint16Array },
  I32: { bits: 32, array: Int32Array },
  U32: { bits: 32, array: Uint32Array },
  F32: { bits: 32, array: Float32Array },
  C64: { bits: 64, array: Float32Array },
  F64: { bits: 64, array: Float64Array },
  I64: { bits: 64, array: BigInt64Array },
  U64: { bits: 64, array: BigUint64Array },
};

export const isDtype = (text: string): text is SafetensorsDtype => Object.hasOwn(dtypes, text);
