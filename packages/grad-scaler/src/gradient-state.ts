import type { GradScaler } from "./grad-scaler.js";
import { insideOf } from "./inside.js";
import type { GradientMark } from "./primitives.js";

/**
 * The state of gradients for a scaler: `"scaled"` by its present scale, `"unscaled"` since, `"plain"` (of an unscaled loss),
 * `"stale"` (a mixture, or of another scale than the present one), or `"unknown"`.
 */
export type GradientState = "scaled" | "unscaled" | "plain" | "stale" | "unknown";

/**
 * The state of gradients with these marks, as data. A checkpoint in the middle of a step stores it, because marks are valid in
 * their process only. {@link marksOf} is the inverse.
 */
export function gradientState<B, L>(
  scaler: GradScaler<B, L>,
  marks: Iterable<GradientMark>,
): GradientState {
  const { marks: own, host } = insideOf(scaler, "gradientState");
  const states = new Set<GradientState>();
  for (const mark of marks)
    if (mark === "plain") states.add("plain");
    else if (!own.isCurrent(mark, host.scales)) states.add("stale");
    else states.add(mark.isUnscaled ? "unscaled" : "scaled");
  const [first = "unknown"] = states;
  return states.size > 1 ? "stale" : first;
}

/** Marks of gradients in this state, by the present scale of the first loss. */
export function marksOf<B, L>(
  scaler: GradScaler<B, L>,
  state: GradientState,
): ReadonlySet<GradientMark> {
  const { marks, host } = insideOf(scaler, "marksOf");
  const [scaled, unscaled] = marks.of(host, 0);
  const inState = {
    unknown: [],
    plain: ["plain"],
    scaled: [scaled],
    unscaled: [unscaled],
    stale: [{ ...scaled, epoch: -1 }],
  } as const;
  return new Set<GradientMark>(inState[state]);
}
