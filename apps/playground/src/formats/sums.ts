import { bfloat16, float16, float32, type RealFormat } from "@halfstep/formats";
import { philox4x32 } from "@halfstep/formats/philox";

/** How many terms are added. */
export const termCount = 4096;

/** Every how many terms the sum is noted. */
const interval = 32;

/** A way to keep a running sum. */
export interface Sum {
  readonly name: string;
  readonly label: string;
  /** The sum before the first term, after the 32nd, and so on. */
  readonly values: Float64Array;
}

/** The positions of the noted sums. */
export const noted: readonly number[] = Array.from(
  { length: termCount / interval + 1 },
  (_, i) => i * interval,
);

/**
 * Adds the same float32 term 4,096 times in four ways. Each addition is exact, and its sum is rounded to the format that keeps
 * it, as a weight in that format takes its updates.
 */
export function sumsOf(term: number, seed: number): readonly Sum[] {
  const nearest = ({ round }: RealFormat): Float64Array => partialSums(term, (sum) => round(sum));
  const stochastic = partialSums(term, (sum, step) => {
    const [bits] = philox4x32([step, 0, 0, 0], [seed, 0]);
    return bfloat16.round(sum, { rounding: "stochastic", bits });
  });
  return [
    { name: "float32", label: "float32", values: nearest(float32) },
    { name: "stochastic", label: "stochastic", values: stochastic },
    { name: "float16", label: "float16", values: nearest(float16) },
    { name: "bfloat16", label: "bfloat16", values: nearest(bfloat16) },
  ];
}

function partialSums(term: number, keep: (sum: number, step: number) => number): Float64Array {
  const added = Math.fround(term);
  const values = new Float64Array(noted.length);
  let sum = 0;
  for (let step = 1; step <= termCount; step++) {
    sum = keep(sum + added, step);
    if (step % interval === 0) values[step / interval] = sum;
  }
  return values;
}

/** After how many terms a sum no longer changes; undefined if it changes to the end. */
export function stallOf({ values }: Sum): number | undefined {
  const first = values.indexOf(values[values.length - 1] as number);
  return first < values.length - 1 ? noted[first] : undefined;
}
