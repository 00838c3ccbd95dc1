import { bfloat16, decodeArray, encodeArray, type FloatFormat, float16 } from "@halfstep/formats";
import type { SafetensorsDtype, SafetensorsTensor } from "@halfstep/safetensors";
import { writeSafetensorsFile } from "@halfstep/safetensors/node";
import { TorchFileError } from "./error.js";
import { requireKnown } from "./known-options.js";
import { openWeights, type WeightsFile, type WeightsOptions } from "./open-weights.js";

/** Options of converting weights. */
export interface ConvertOptions extends WeightsOptions {
  /** Store float64, float32, float16 and bfloat16 in this dtype, rounded to nearest even. Default: as they are. */
  readonly dtype?: "float32" | "float16" | "bfloat16" | undefined;
  /** Called after each tensor, first as they are written, then as they are checked. */
  readonly onProgress?: ((progress: ConvertProgress) => void) | undefined;
}

/** How far a conversion is. */
export interface ConvertProgress {
  readonly phase: "write" | "check";
  /** Bytes of the tensors that are done, as they are stored in the new file. */
  readonly bytes: number;
  readonly totalBytes: number;
}

/** What a conversion wrote. */
export interface Converted {
  readonly tensors: number;
  /** Of their elements. */
  readonly bytes: number;
  /** The number of tensors of each dtype. */
  readonly dtypes: Readonly<Partial<Record<SafetensorsDtype, number>>>;
  /** Dotted keys of what has tensors, too, and was not written: `["optimizer"]`. */
  readonly skipped: readonly string[];
}

const dtypeNames = { float32: "F32", float16: "F16", bfloat16: "BF16" } as const;
const halves = { F16: float16, BF16: bfloat16 } as const;
const bytesOf: Partial<Record<SafetensorsDtype, number>> = { F64: 8, F32: 4, F16: 2, BF16: 2 };

/**
 * Writes weights as a safetensors file. One tensor is in memory at a time. The new file is compared with the old one before it takes its
 * place. It appears whole and right, or not at all.
 *
 * @param from what `openWeights` opens
 * @throws TypeError for a dtype or an option that does not exist
 * @throws TorchFileError where a finite element would become infinite, and as `openWeights` throws
 * @throws the system's error (with `code`) when a file cannot be read or written
 *
 * @example
 * await convertToSafetensors("resnet20.th", "resnet20.safetensors", { dtype: "float16" });
 */
export async function convertToSafetensors(
  from: string,
  to: string,
  options: ConvertOptions = {},
): Promise<Converted> {
  requireKnown("convertToSafetensors", options, ["key", "dtype", "onProgress"]);
  const { dtype } = options;
  if (dtype !== undefined && !Object.hasOwn(dtypeNames, dtype))
    throw new TypeError(
      `convertToSafetensors: dtype is ${String(dtype)}: pass any of ${Object.keys(dtypeNames).join(", ")}`,
    );
  const weights = await openWeights(from, { key: options.key });
  try {
    return await converted(weights, from, to, options);
  } finally {
    await weights.close();
  }
}

async function converted(
  weights: WeightsFile,
  from: string,
  to: string,
  { dtype, onProgress }: ConvertOptions,
): Promise<Converted> {
  const dtypes: Partial<Record<SafetensorsDtype, number>> = {};
  let totalBytes = 0;
  for (const [, info] of Object.entries(weights.tensors)) {
    const stored = storedDtype(info.dtype, dtype);
    dtypes[stored] = (dtypes[stored] ?? 0) + 1;
    totalBytes += (info.byteLength / (bytesOf[info.dtype] ?? 1)) * (bytesOf[stored] ?? 1);
  }
  const read = async (name: string): Promise<SafetensorsTensor> =>
    inDtype(await weights.read(name), dtype, { source: from, tensor: name });
  const counter = (phase: ConvertProgress["phase"]) => {
    let bytes = 0;
    return ({ data }: SafetensorsTensor): void => {
      bytes += data.byteLength;
      onProgress?.({ phase, bytes, totalBytes });
    };
  };
  const written = counter("write");
  const tensors = Object.entries(weights.tensors).map(([name, info]) => {
    const data = async () => {
      const tensor = await read(name);
      written(tensor);
      return tensor.data;
    };
    return [name, { dtype: storedDtype(info.dtype, dtype), shape: info.shape, data }] as const;
  });
  await writeSafetensorsFile(to, tensors as Parameters<typeof writeSafetensorsFile>[1], {
    metadata: { format: "pt" },
    inspect: async (file) => {
      const checked = counter("check");
      for (const name of Object.keys(file.tensors)) {
        const [expected, found] = [await read(name), await file.read(name)];
        if (!isSame(expected, found))
          throw new TorchFileError(
            "storage",
            `was written to ${to} and read from it as something else: look for a failing disk`,
            { source: from, tensor: name },
          );
        checked(found);
      }
    },
  });
  return { tensors: tensors.length, bytes: totalBytes, dtypes, skipped: weights.skipped ?? [] };
}

const storedDtype = (dtype: SafetensorsDtype, asked: ConvertOptions["dtype"]): SafetensorsDtype =>
  asked !== undefined && dtype in bytesOf ? dtypeNames[asked] : dtype;

/** The tensor in another dtype. */
function inDtype(
  tensor: SafetensorsTensor,
  asked: ConvertOptions["dtype"],
  place: { readonly source: string; readonly tensor: string },
): SafetensorsTensor {
  const dtype = storedDtype(tensor.dtype, asked);
  if (dtype === tensor.dtype) return tensor;
  const { shape } = tensor;
  const numbers = numbersOf(tensor);
  const stored = (data: Float32Array | Uint16Array) =>
    ({ dtype, shape, data }) as SafetensorsTensor;
  if (dtype === "F32") {
    const rounded = Float32Array.from(numbers);
    requireFinite(numbers, rounded, "float32", place);
    return stored(rounded);
  }
  const format: FloatFormat<Uint16Array> = halves[dtype as keyof typeof halves];
  const codes = encodeArray(numbers, format);
  requireFinite(numbers, decodeArray(codes, format), format.name, place);
  return stored(codes);
}

/** The elements of a tensor of floats, exactly. */
function numbersOf(tensor: SafetensorsTensor): Float32Array | Float64Array {
  if (tensor.dtype === "F16" || tensor.dtype === "BF16")
    return decodeArray(tensor.data, halves[tensor.dtype]);
  return tensor.data as Float32Array | Float64Array;
}

/** @throws TorchFileError where rounding made infinities */
function requireFinite(
  numbers: Float32Array | Float64Array,
  rounded: Float32Array,
  dtype: string,
  place: { readonly source: string; readonly tensor: string },
): void {
  let lost = 0;
  let largest = 0;
  for (let i = 0; i < numbers.length; i++)
    if (Number.isFinite(numbers[i]) && !Number.isFinite(rounded[i])) {
      lost += 1;
      largest = Math.max(largest, Math.abs(numbers[i] as number));
    }
  if (lost > 0)
    throw new TorchFileError(
      "dtype",
      `${lost} of ${numbers.length} elements are beyond the largest number of ${dtype}, and would become infinite: ${adviceFor(largest)}`,
      place,
    );
}

/** The dtypes that hold a number of a tensor of floats. */
function adviceFor(number: number): string {
  if (!Number.isFinite(Math.fround(number))) return "ask for no dtype, which keeps float64";
  const [rounded] = decodeArray(encodeArray([number], bfloat16), bfloat16);
  return `take ${Number.isFinite(rounded) ? "bfloat16 or " : ""}float32`;
}

const isSame = (a: SafetensorsTensor, b: SafetensorsTensor): boolean => {
  const [left, right] = [a, b].map(({ data }) =>
    Buffer.from(data.buffer, data.byteOffset, data.byteLength),
  );
  return (
    a.dtype === b.dtype &&
    a.shape.join() === b.shape.join() &&
    left?.equals(right as Buffer) === true
  );
};
