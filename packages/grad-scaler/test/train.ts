import { type GradScaler, scaledValue } from "../src/index.js";
import type { Sgd } from "./sgd.js";

/** One whole training step, of a loss whose value is `loss`. */
export function train(
  scaler: GradScaler<Float32Array>,
  optimizer: Sgd,
  gradients: readonly number[],
  loss = 1,
): void {
  optimizer.zeroGrad();
  optimizer.backward(gradients, scaledValue(scaler.scale(Float32Array.of(loss))));
  scaler.step(optimizer);
  scaler.update();
}
