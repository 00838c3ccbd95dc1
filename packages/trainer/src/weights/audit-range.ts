import { bfloat16, compare, exponentHistogram, type FloatFormat, float16 } from "@halfstep/formats";
import type { StateDict } from "@halfstep/nn";

const formats = { float16, bfloat16 } as const;

/** What a format would do to a tensor. */
export interface TensorRange {
  readonly name: string;
  readonly shape: readonly number[];
  /** How the state dict has it. */
  readonly dtype: string;
  readonly count: number;
  /** Elements that are NaN or infinite already. */
  readonly nonFinite: number;
  /** Elements that are finite, and would not be. */
  readonly overflow: number;
  /** Elements that are not 0, and would be. */
  readonly underflow: number;
  /** Elements that would be subnormal: some of their bits are lost, and some GPUs take them as 0. */
  readonly subnormal: number;
  /** Largest finite magnitude, and smallest that is not 0. */
  readonly max: number;
  readonly min: number;
}

/** Where the numbers of a model lie in the range of a format. */
export interface RangeAudit {
  readonly format: string;
  /** Tensors of floats, and their elements. */
  readonly tensors: number;
  readonly elements: number;
  /** How many tensors there are of each dtype, integers included. */
  readonly dtypes: Readonly<Record<string, number>>;
  /** Those with elements that are not finite, would overflow, or vanish: the worst first. */
  readonly problems: readonly TensorRange[];
  /** Whether all elements stay finite. Training in this format without float32 masters wants `problems` to be empty as well. */
  readonly isSafe: boolean;
  /** What is wrong and what to do about it, in lines for people; empty where nothing is. */
  readonly advice: readonly string[];
}

/**
 * Looks for weights that a 16-bit format cannot hold, before they are loaded into a model that is stored or computes in it.
 *
 * @example
 * const audit = auditRange(stateDictOf(tensors), "float16");
 * for (const line of audit.advice) console.warn(line);
 */
export function auditRange(state: StateDict, format: "float16" | "bfloat16"): RangeAudit {
  const dtypes: Record<string, number> = {};
  const ranges: TensorRange[] = [];
  for (const [name, { shape, dtype, data }] of Object.entries(state)) {
    dtypes[dtype] = (dtypes[dtype] ?? 0) + 1;
    if (data instanceof Float32Array || data instanceof Float64Array)
      ranges.push({ name, shape, dtype, ...rangeOf(data, formats[format]) });
  }
  const problems = ranges
    .filter(({ nonFinite, overflow, underflow }) => nonFinite + overflow + underflow > 0)
    .sort((a, b) => badness(b) - badness(a));
  return {
    format,
    tensors: ranges.length,
    elements: ranges.reduce((sum, { count }) => sum + count, 0),
    dtypes,
    problems,
    isSafe: problems.every(({ nonFinite, overflow }) => nonFinite + overflow === 0),
    advice: problems.map((problem) => adviceOn(problem, formats[format])),
  };
}

function rangeOf(data: Float32Array | Float64Array, format: FloatFormat) {
  const { nonFinite, overflow, underflow, subnormal } = compare(data, format);
  const { min, max } = exponentHistogram(data);
  const count = data.length;
  const bad = Math.round(nonFinite * count);
  const of = (share: number): number => Math.round(share * (count - bad));
  return {
    ...{ count, nonFinite: bad, min, max },
    overflow: of(overflow),
    underflow: of(underflow),
    subnormal: of(subnormal),
  };
}

/** One element that is lost altogether is worse than all that vanish. */
const badness = ({ count, nonFinite, overflow, underflow }: TensorRange): number =>
  2 * Math.sign(nonFinite) + Math.sign(overflow) + underflow / count / 2;

function adviceOn(
  { name, count, nonFinite, overflow, underflow, max, min }: TensorRange,
  { name: format, finfo }: FloatFormat,
): string {
  const some = (n: number): string => `${n} of ${count} elements`;
  if (nonFinite > 0)
    return `${name}: ${some(nonFinite)} are NaN or infinite: the checkpoint is damaged, or its training had diverged; take an earlier one`;
  if (overflow > 0)
    return `${name}: ${some(overflow)} are beyond ${format}'s largest number, ${finfo.max} (up to ${digits(max)}): keep its module in float32 (\`modules\` of a recipe), or use ${format === "float16" ? "bfloat16 or float32" : "float32"}`;
  return `${name}: ${some(underflow)} become 0 in ${format} (down to ${digits(min)}; its smallest number is ${digits(finfo.smallestSubnormal)}): ${underflow > count / 100 ? `keep its module in float32, or use ${format === "float16" ? "bfloat16" : "float32"}` : "float32 parameters or masters (float16, O1, O2) keep them; O3 and half() lose them"}`;
}

const digits = (value: number): string => String(Number(value.toPrecision(4)));
