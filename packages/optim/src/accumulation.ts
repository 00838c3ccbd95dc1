import { averageSums } from "@halfstep/kernels/optimizers";
import type { ClippableOptimizer } from "./clip.js";

/**
 * Divides gradients by the number of samples or tokens that went into them: for micro-batches whose losses are sums, where
 * their total is known only after the last. Means of batches of unequal size, averaged, would give each token of a short
 * batch more weight. Where the total is known before, `scaler.window(optimizer, { tokens })` does all of it.
 *
 * Call it after the last `backward()` and before `scaler.unscale()`, clipping or the step. It waits for nothing.
 *
 * @example
 * let tokens = 0;
 * for (const batch of batches) {
 *   scaler.scale(crossEntropy(model(batch), batch.labels, { reduction: "sum" })).backward();
 *   tokens += batch.tokens;
 * }
 * averageGradients(optimizer, tokens);
 * scaler.step(optimizer);
 *
 * @throws RangeError for a count that is not positive.
 */
export function averageGradients<B>(optimizer: ClippableOptimizer<B>, count: number): void {
  if (!(count > 0 && count < Number.POSITIVE_INFINITY))
    throw new RangeError(`count is ${count}: give the positive number of samples or tokens`);
  for (const { buffer, offset, length, dtype } of optimizer.gradients())
    optimizer.target.launch(averageSums({ buffer, offset, length, dtype }, { parts: count }));
}
