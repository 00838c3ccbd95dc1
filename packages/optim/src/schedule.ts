/**
 * A learning rate for each applied step, counted from 0: a pure function. The device reads it from a table, indexed by the
 * steps that it really applied: a skipped step does not advance it, and the host need not know.
 */
export interface Schedule {
  (step: number): number;
  /** From this step on the rate stays what it is. Without it the table grows with the steps that are taken. */
  readonly totalSteps?: number;
}

/** A number, or a schedule. */
export type LearningRate = number | Schedule;

/** The same rate in every step. */
export const constant = (lr: number): Schedule => schedule(1, () => lr);

/** From `startFactor · lr` up to `lr` in `warmupSteps` equal steps, and `lr` from then on: torch's LinearLR. */
export function linearWarmup(options: {
  readonly lr: number;
  readonly warmupSteps: number;
  /** Default 1 / 3, as in torch. */
  readonly startFactor?: number;
}): Schedule {
  const { lr, warmupSteps, startFactor = 1 / 3 } = options;
  requireCount("warmupSteps", warmupSteps);
  return schedule(
    warmupSteps + 1,
    (step) => lr * (startFactor + ((1 - startFactor) * step) / warmupSteps),
  );
}

/**
 * From `lr` down to `minLr` along half a cosine, reached at step `totalSteps`: torch's CosineAnnealingLR. With
 * `warmupSteps` the rate first rises linearly, by `lr / warmupSteps` a step, and the cosine takes the rest.
 */
export function cosine(options: {
  readonly lr: number;
  readonly totalSteps: number;
  /** Default 0. */
  readonly minLr?: number;
  /** Default 0. */
  readonly warmupSteps?: number;
}): Schedule {
  const { lr, totalSteps, minLr = 0, warmupSteps = 0 } = options;
  requireCount("totalSteps", totalSteps);
  if (!(warmupSteps >= 0 && warmupSteps < totalSteps))
    throw new RangeError(
      `warmupSteps is ${warmupSteps}: it must be less than totalSteps (${totalSteps})`,
    );
  return schedule(totalSteps + 1, (step) =>
    step < warmupSteps
      ? (lr * (step + 1)) / warmupSteps
      : annealed(lr, minLr, (step - warmupSteps) / (totalSteps - warmupSteps)),
  );
}

export interface OneCycleOptions {
  /** The largest rate, reached after `pctStart` of the steps. */
  readonly maxLr: number;
  readonly totalSteps: number;
  /** Part of the steps in which the rate rises. Default 0.3. */
  readonly pctStart?: number;
  /** The first rate is `maxLr / divFactor`. Default 25. */
  readonly divFactor?: number;
  /** The last rate is the first one divided by this. Default 10,000. */
  readonly finalDivFactor?: number;
}

/**
 * The one-cycle policy (Smith and Topin 2019) by torch's `OneCycleLR` with `anneal_strategy="cos"`: up to `maxLr` along
 * half a cosine, and down again far below the start. Momentum is not cycled (`cycle_momentum=False`).
 *
 * @example
 * new AdamW(target, flat, { lr: oneCycle({ maxLr: 1e-2, totalSteps: 469 }) });
 */
export function oneCycle(options: OneCycleOptions): Schedule {
  const { maxLr, totalSteps, pctStart = 0.3, divFactor = 25, finalDivFactor = 1e4 } = options;
  requireCount("totalSteps", totalSteps);
  if (!(pctStart >= 0 && pctStart <= 1))
    throw new RangeError(`pctStart is ${pctStart}: it must be between 0 and 1`);
  const initialLr = maxLr / divFactor;
  const peak = pctStart * totalSteps - 1;
  const last = totalSteps - 1;
  return schedule(totalSteps, (step) =>
    step <= peak
      ? annealed(initialLr, maxLr, peak > 0 ? step / peak : 1)
      : annealed(maxLr, initialLr / finalDivFactor, (step - peak) / (last - peak)),
  );
}

const annealed = (start: number, end: number, part: number): number =>
  end + ((start - end) / 2) * (Math.cos(Math.PI * part) + 1);

function schedule(totalSteps: number, rate: (step: number) => number): Schedule {
  return Object.assign((step: number) => rate(Math.min(step, totalSteps - 1)), { totalSteps });
}

function requireCount(name: string, value: number): void {
  if (!Number.isSafeInteger(value) || value < 1)
    throw new RangeError(`${name} is ${value}: it must be a whole number of at least 1`);
}
