import { decodeArray, type FormatName, formatOf } from "@halfstep/formats";
import { dtypes, encodeElements, isFloat8, isHalf } from "@halfstep/formats/dtypes";
import type { SavedTensor, StateDict } from "@halfstep/nn";
import { dtypeNames, type SafetensorsDtype, type SafetensorsTensor } from "@halfstep/safetensors";
import { dtypeOf, safetensorsDtypeOf } from "./safetensors-dtype.js";

type Tensors = Readonly<Record<string, SafetensorsTensor>>;

/** Eight-bit floats, which are decoded because variables cannot be stored in them. */
const eightBit: readonly SafetensorsDtype[] = [
  "F8_E4M3",
  "F8_E5M2",
  "F8_E8M0",
  "F8_E4M3FNUZ",
  "F8_E5M2FNUZ",
];

/**
 * The tensors of a safetensors file as a state dict: what `model.loadStateDict()` and, for files of torch and Hugging Face,
 * `loadTorchStateDict(model, …)` of `@halfstep/nn` take. F16, BF16 and F8 are decoded, exactly; integers become int32 and BOOL
 * uint32. F64 is rounded to float32 when it is loaded.
 *
 * @throws TypeError that names the tensor, for an unsupported dtype, for an integer beyond 32 bits, and for a finite number beyond float32
 * @example
 * const { tensors } = readSafetensors(await readFile("model.safetensors"));
 * loadTorchStateDict(model, stateDictOf(tensors));
 */
export const stateDictOf = (tensors: Tensors): StateDict =>
  Object.fromEntries(Object.entries(tensors).map(([name, tensor]) => [name, saved(name, tensor)]));

/**
 * A state dict as the tensors of a safetensors file, in the dtypes that it names.
 * @throws TypeError that names the tensor, for data that does not match its dtype
 * @example
 * await writeSafetensorsFile("model.safetensors", safetensorsOf(await torchStateDict(model)), { metadata: { format: "pt" } });
 */
export const safetensorsOf = (state: StateDict): Tensors =>
  Object.fromEntries(Object.entries(state).map(([name, tensor]) => [name, stored(name, tensor)]));

function saved(name: string, tensor: SafetensorsTensor): SavedTensor {
  const { shape, dtype } = tensor;
  if (tensor.dtype === "F32") return { shape, dtype: "float32", data: tensor.data };
  if (tensor.dtype === "F64")
    return { shape, dtype: "float32", data: withinFloat32(name, tensor.data) };
  const own = dtypeOf(dtype);
  if (own && isHalf(own)) {
    const codes = tensor.data as Uint16Array;
    return { shape, dtype: own, data: floats(decodeArray(codes, dtypes[own].format)) };
  }
  if (eightBit.includes(dtype)) {
    const format = formatOf(dtypeNames[dtype] as FormatName);
    return {
      shape,
      dtype: "float32",
      data: floats(decodeArray(tensor.data as Uint8Array, format)),
    };
  }
  if (tensor.dtype === "U32" || tensor.dtype === "BOOL")
    return { shape, dtype: "uint32", data: Uint32Array.from(tensor.data) };
  if (/^[IU](8|16|32|64)$/.test(dtype))
    return {
      shape,
      dtype: "int32",
      data: integers(name, tensor.data as Int32Array | BigInt64Array),
    };
  throw new TypeError(`${name} has the dtype ${dtype}, which no model here can load: convert it`);
}

const floats = (values: ArrayLike<number>): Float32Array =>
  values instanceof Float32Array ? values : Float32Array.from(values);

/** Numbers that only round to float32. */
function withinFloat32(name: string, values: Float64Array): Float64Array {
  const beyond = values.find(
    (value) => Number.isFinite(value) && !Number.isFinite(Math.fround(value)),
  );
  if (beyond !== undefined)
    throw new TypeError(`${name} has the number ${beyond}, which float32 does not hold`);
  return values;
}

function integers(name: string, values: Int32Array | BigInt64Array): Int32Array {
  const result = new Int32Array(values.length);
  for (let i = 0; i < values.length; i++) {
    const value = Number(values[i]);
    result[i] = value;
    if (result[i] !== value)
      throw new TypeError(`${name} has the integer ${value}, which 32 bits do not hold`);
  }
  return result;
}

function stored(name: string, { shape, dtype, data }: SavedTensor): SafetensorsTensor {
  const { kind, Elements } = dtypes[dtype];
  if (isFloat8(dtype) || (kind !== "float" && !(data instanceof Elements)))
    throw new TypeError(
      `${name} has the dtype ${dtype} and its data is a ${data.constructor.name}`,
    );
  return {
    dtype: safetensorsDtypeOf(dtype),
    shape,
    data: encodeElements(data, dtype),
  } as SafetensorsTensor;
}
