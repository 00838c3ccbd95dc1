import type { FormatComparison } from "@halfstep/formats";

/** How bad a loss is. */
type Grade = "fine" | "coarse" | "lossy" | "broken";

/** A loss in a word and a figure. */
export interface Verdict {
  readonly grade: Grade;
  readonly text: string;
}

/** What matters most of a comparison: what becomes infinite, then what becomes 0, then how far the others are off. */
export function verdictOf(loss: FormatComparison): Verdict {
  const percent = (share: number): string => {
    if (share > 0.995 && share < 1) return "> 99 %";
    return `${share < 0.001 ? "< 0.1" : (100 * share).toFixed(share < 0.1 ? 1 : 0)} %`;
  };
  if (loss.count === 0) return { grade: "fine", text: "empty" };
  if (loss.nonFinite === 1) return { grade: "broken", text: "no finite number" };
  if (loss.overflow > 0) return { grade: "broken", text: `${percent(loss.overflow)} overflow` };
  if (loss.underflow > 0.05) return { grade: "lossy", text: `${percent(loss.underflow)} become 0` };
  if (loss.sqnr === Infinity) return { grade: "fine", text: "exact" };
  const grade = loss.meanRelativeError < 0.005 ? "fine" : "coarse";
  return { grade, text: `± ${percent(loss.meanRelativeError)}` };
}

/** The share of NaN and infinities in a tensor itself. No format loses them; training cannot use them. */
export const nonFiniteOf = (losses: readonly FormatComparison[] | undefined): number =>
  losses?.[0]?.nonFinite ?? 0;
