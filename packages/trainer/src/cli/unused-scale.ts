import { type LossScaleFlags, recipeFor, scalerOptionsFor } from "../precision.js";

/**
 * Reports flags of the loss scale that no precision of the run uses: given with float32, they probably mean that float16
 * was forgotten.
 */
export function noteUnusedScale(
  precisions: readonly string[],
  { staticLossScale, initScale }: LossScaleFlags,
  onNote: (line: string) => void,
): void {
  const flags = { "--static-loss-scale": { staticLossScale }, "--init-scale": { initScale } };
  for (const [flag, given] of Object.entries(flags)) {
    const [value] = Object.values(given);
    const isUsed = precisions.some(
      (name) => scalerOptionsFor(recipeFor(name), given).initScale === value,
    );
    if (value !== undefined && !isUsed)
      onNote(`${flag} ${value} is ignored: ${precisions.join(", ")} has no such loss scale`);
  }
}
