import { GradScaler, stepperOf } from "./grad-scaler.js";
import type { Stepper } from "./stepper.js";

/**
 * The inside of a scaler, for a function of this package that takes one.
 *
 * @throws TypeError where it is not of this copy of the package.
 */
export function insideOf<B, L>(scaler: GradScaler<B, L>, caller: string): Stepper<B, L> {
  if (scaler instanceof GradScaler) return stepperOf(scaler);
  throw new TypeError(
    `${caller} takes a GradScaler of the same copy of @halfstep/grad-scaler: make it with that, and see by ` +
      "`npm ls @halfstep/grad-scaler` that there is one copy.",
  );
}
