import { ParameterAverage, type Watchable } from "./average.js";
import { requireNone } from "./checks.js";

/**
 * The mean of an optimizer's parameters over every update: torch's AveragedModel as stochastic weight averaging (Izmailov et
 * al. 2018) uses it, `average += (p - average) / (updates + 1)`. It is kept in float32 on the device, and skipped steps do not
 * count. Call `update()` at the end of each epoch of a constant or cyclic learning rate.
 *
 * @example
 * const swa = new StochasticWeightAverage(optimizer);
 * if (epoch >= 75) swa.update();
 */
export class StochasticWeightAverage<B> extends ParameterAverage<B> {
  constructor(optimizer: Watchable<B>);
  constructor(optimizer: Watchable<B>, ...given: readonly unknown[]) {
    requireNone("StochasticWeightAverage(optimizer), after the optimizer,", given);
    super(optimizer, "StochasticWeightAverage", (update) => 1 / (update + 1));
  }
}
