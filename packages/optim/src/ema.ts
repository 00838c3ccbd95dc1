import { ParameterAverage, type Watchable } from "./average.js";
import { requireBoolean, requireNames, requireOptions, shown } from "./checks.js";
import { requirePart, type Schedule } from "./schedules/schedule.js";

/** Options of {@link ExponentialMovingAverage}. */
export interface ExponentialMovingAverageOptions {
  /**
   * The factor of the old average in an update, from 0 to 1: a number, or a function of the number of earlier updates.
   * Default 0.999, as in torch.
   */
  readonly decay?: number | ((updates: number) => number);
  /**
   * Begins with a smaller decay: `min(decay, (1 + n) / (10 + n))` after n updates, as tf.train.ExponentialMovingAverage does
   * with `num_updates`. Default false.
   */
  readonly warmUp?: boolean;
}

/**
 * An exponential moving average of an optimizer's parameters, `average = decay · average + (1 - decay) · p`: torch's
 * AveragedModel with `get_ema_avg_fn(decay)`. The first update copies the parameters. The average is float32 on the device,
 * and skipped steps do not count.
 *
 * @example
 * const ema = new ExponentialMovingAverage(optimizer, { decay: 0.9999, warmUp: true });
 * scaler.step(optimizer);
 * ema.update();
 */
export class ExponentialMovingAverage<B> extends ParameterAverage<B> {
  /** @throws RangeError for a decay that is not from 0 to 1. */
  constructor(optimizer: Watchable<B>, options: ExponentialMovingAverageOptions = {}) {
    super(optimizer, "ExponentialMovingAverage", weightsOf(options));
  }
}

/** The weight of the parameters, by update. */
function weightsOf(options: ExponentialMovingAverageOptions): Schedule {
  requireOptions("ExponentialMovingAverage", options);
  requireNames("ExponentialMovingAverage", options, ["decay", "warmUp"]);
  const { decay = 0.999, warmUp = false } = options;
  requireBoolean("warmUp", warmUp);
  if (typeof decay !== "number" && typeof decay !== "function")
    throw new RangeError(
      `decay is ${shown(decay)}: it must be a number from 0 to 1, or a function of the number of updates`,
    );
  const decayAfter = (updates: number): number => {
    const wanted = typeof decay === "number" ? decay : decay(updates);
    requirePart("decay", wanted);
    return warmUp ? Math.min(wanted, (1 + updates) / (10 + updates)) : wanted;
  };
  const weight = (update: number): number => (update === 0 ? 1 : 1 - decayAfter(update));
  weight(1);
  if (typeof decay !== "number") return weight;
  // The warm-up ends where (1 + n) / (10 + n) reaches the decay.
  const end = warmUp && decay > 0.1 ? (10 * decay - 1) / (1 - decay) : 0;
  return Number.isFinite(end)
    ? Object.assign(weight, { totalSteps: Math.max(2, Math.ceil(end) + 1) })
    : weight;
}
