import { averageSums } from "@halfstep/kernels/optimizers";
import { shown } from "./checks.js";
import type { ClippableOptimizer } from "./clip.js";

/**
 * Divides gradients by their number of samples or tokens, for micro-batches whose losses are sums and whose total is known
 * only after the last. An average of means would give tokens of short batches more weight. Where the total is known
 * before, use `accumulationWindow(scaler, optimizer, { tokens })`.
 *
 * Call it after the last `backward()` and before `scaler.unscale()`, clipping or the step. It does not wait for the
 * device.
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
  if (typeof count !== "number" || !(count > 0 && count < Number.POSITIVE_INFINITY))
    throw new RangeError(`count is ${shown(count)}: give the positive number of samples or tokens`);
  for (const { buffer, offset, length, dtype } of optimizer.gradients())
    optimizer.target.launch(averageSums({ buffer, offset, length, dtype }, { parts: count }));
}
