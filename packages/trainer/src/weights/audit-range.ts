import type { Recipe } from "@halfstep/autocast";
import { bfloat16, compare, exponentHistogram, type FloatFormat, float16 } from "@halfstep/formats";
import type { StateDict } from "@halfstep/nn";

const formats = { float16, bfloat16 } as const;

/** The effect of a format on a tensor. */
export interface TensorRange {
  readonly name: string;
  readonly shape: readonly number[];
  /** The dtype in the state dict. */
  readonly dtype: string;
  readonly count: number;
  /** Elements that are NaN or infinite in the state dict. */
  readonly nonFinite: number;
  /** Finite elements that would become infinite. */
  readonly overflow: number;
  /** Nonzero elements that would become 0. */
  readonly underflow: number;
  /** Elements that would be subnormal: they lose some of their bits, and some GPUs flush them to 0. */
  readonly subnormal: number;
  /** Largest finite magnitude, and smallest that is not 0. */
  readonly max: number;
  readonly min: number;
}

/** The numbers of a model in relation to the range of a format. */
export interface RangeAudit {
  readonly format: string;
  /** Tensors of floats, and their elements. */
  readonly tensors: number;
  readonly elements: number;
  /** The number of tensors of each dtype, integers included. */
  readonly dtypes: Readonly<Record<string, number>>;
  /** Those with elements that are not finite, would overflow, or vanish: the worst first. */
  readonly problems: readonly TensorRange[];
  /** Whether all elements stay finite. Training in this format without float32 masters also requires empty `problems`. */
  readonly isSafe: boolean;
  /** Problems and remedies, in lines for people; empty where there are none. */
  readonly advice: readonly string[];
}

/**
 * Finds weights beyond the range of a 16-bit format, before they are loaded into a model that is stored or computes in it.
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

/**
 * Notes the advice of {@link auditRange} on weights that a recipe stores, or computes with, in 16 bits.
 * @param onNote called with lines for people; never where the recipe is float32 alone
 */
export function noteRange(
  state: StateDict,
  { params, compute }: Pick<Recipe, "params" | "compute">,
  onNote: (line: string) => void,
): void {
  const half = [params, compute].find((dtype) => dtype !== "float32");
  if (half === "float16" || half === "bfloat16")
    for (const line of auditRange(state, half).advice) onNote(line);
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

/** One element that becomes infinite is worse than any number that become 0. */
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
