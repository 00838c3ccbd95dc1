import {
  bfloat16,
  compare,
  decodeArray,
  type FloatFormat,
  type FormatComparison,
  type FormatName,
  float8e4m3fn,
  float8e5m2,
  float16,
  formatOf,
} from "@halfstep/formats";
import { dtypeNames, openSafetensorsBlob, type SafetensorsTensor } from "@halfstep/safetensors";
import { requireSafetensors } from "./other-files.js";

/** Formats that a file is compared with. */
export const examined: readonly FloatFormat[] = [float16, bfloat16, float8e4m3fn, float8e5m2];

/** What formats would lose of a tensor. */
export interface TensorExam {
  readonly name: string;
  readonly dtype: string;
  readonly shape: readonly number[];
  readonly bytes: number;
  /** Largest finite magnitude; 0 where there is none. */
  readonly largest: number;
  /** One for each of {@link examined}; absent for tensors without floating-point numbers. */
  readonly losses?: readonly FormatComparison[];
}

/** Floating-point dtypes that are stored as codes of a format, one a byte or two. */
const coded = new Set(["F16", "BF16", "F8_E4M3", "F8_E5M2", "F8_E4M3FNUZ", "F8_E5M2FNUZ"]);

/**
 * The tensors of a safetensors file, one after another, in the order of the file. One is in memory at a time.
 * @param onCount is told how many there are, before the first is read
 * @throws SafetensorsError where the file is malformed, and another error where it is of another kind
 */
export async function* examine(
  file: Blob,
  source: string,
  onCount: (count: number) => void = () => {},
): AsyncGenerator<TensorExam> {
  await requireSafetensors(file, source);
  const opened = await openSafetensorsBlob(file, { source });
  onCount(Object.keys(opened.tensors).length);
  for (const [name, { dtype, shape, byteLength }] of Object.entries(opened.tensors)) {
    const numbers = numbersOf(await opened.read(name));
    yield {
      name,
      dtype: dtypeNames[dtype],
      shape,
      bytes: byteLength,
      largest: numbers === undefined ? 0 : largestOf(numbers),
      ...(numbers && { losses: examined.map((format) => compare(numbers, format)) }),
    };
  }
}

function numbersOf({ dtype, data }: SafetensorsTensor): Float32Array | Float64Array | undefined {
  if (dtype === "F32") return data as Float32Array;
  if (dtype === "F64") return data as Float64Array;
  if (!coded.has(dtype)) return undefined;
  const format = formatOf(dtypeNames[dtype] as FormatName);
  return Float32Array.from(decodeArray(data as Uint16Array, format));
}

function largestOf(values: ArrayLike<number>): number {
  let largest = 0;
  for (let i = 0; i < values.length; i++) {
    const magnitude = Math.abs(values[i] as number);
    if (magnitude > largest && magnitude < Infinity) largest = magnitude;
  }
  return largest;
}
