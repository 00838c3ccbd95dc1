import type { RealFormat } from "@halfstep/formats";
import recorded from "./gradients.json" with { type: "json" };

/** Magnitudes of gradients by powers of two: `counts[i]` lie in [2^(firstExponent + i), 2^(firstExponent + i + 1)). */
export interface Gradients {
  readonly id: string;
  readonly label: string;
  readonly zeros: number;
  readonly firstExponent: number;
  readonly counts: readonly number[];
}

/** Gradients of one step of training, from `recipes/gradients.ts`. */
export const gradientSets: readonly Gradients[] = recorded;

/** What a format makes of numbers. */
export type Fate = "zero" | "subnormal" | "normal" | "infinite";

/** The kind that numbers around a power of two have in a format. Beyond the largest is infinite, NaN in formats without infinity. */
export function fateOf({ classify, finfo }: RealFormat, exponent: number): Fate {
  const middle = 1.5 * 2 ** exponent;
  const { kind } = classify(middle);
  if (kind === "infinity" || kind === "nan" || middle > 2 * finfo.max) return "infinite";
  return kind;
}

/** One bar: a power of two of the gradients times the scale, and what becomes of it. */
export interface Bar {
  readonly exponent: number;
  readonly share: number;
  readonly fate: Fate;
}

/** The bars of gradients times 2^scale in a format. Gradients that are 0 before they are scaled are left out: no format loses them. */
export function barsOf(gradients: Gradients, format: RealFormat, scale: number): readonly Bar[] {
  const total = gradients.counts.reduce((sum, count) => sum + count, 0);
  return gradients.counts.map((count, i) => {
    const exponent = gradients.firstExponent + i + scale;
    return { exponent, share: count / total, fate: fateOf(format, exponent) };
  });
}

/** The share of each fate. */
export function sharesOf(bars: readonly Bar[]): Readonly<Record<Fate, number>> {
  const shares = { zero: 0, subnormal: 0, normal: 0, infinite: 0 };
  for (const { share, fate } of bars) shares[fate] += share;
  return shares;
}
