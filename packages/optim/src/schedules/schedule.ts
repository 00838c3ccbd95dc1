import { requireNames, requireNumber, requireOptions, shown } from "../checks.js";

/**
 * A learning rate for each applied step, counted from 0: a pure function. The device reads it from a table, indexed by the
 * number of applied steps: a skipped step does not advance it, and the host does not take part. So runs in all precisions
 * have the same trace of rates.
 */
export interface Schedule {
  (step: number): number;
  /** The step from which on the rate is constant. Without it the table grows with the steps. */
  readonly totalSteps?: number;
}

/** A number, or a schedule. */
export type LearningRate = number | Schedule;

/**
 * The options of a schedule, checked: `rates` are learning rates, which are there, and `others` have checks of their own.
 *
 * @throws TypeError where there is no object of options. RangeError for an unknown one, and for a rate that is no number from 0 on.
 */
export function checked<T extends object>(
  name: string,
  options: T,
  rates: readonly (keyof T & string)[],
  others: readonly (keyof T & string)[],
): T {
  requireOptions(name, options);
  requireNames(name, options, [...rates, ...others]);
  for (const rate of rates) requireNumber(rate, options[rate] as number, 0);
  return options;
}

/** A schedule with a constant rate from its last step on. */
export function schedule(totalSteps: number, rate: (step: number) => number): Schedule {
  return Object.assign((step: number) => rate(Math.min(step, totalSteps - 1)), { totalSteps });
}

/** Throws a RangeError unless `value` is a whole number of at least `least`. */
export function requireCount(name: string, value: number, least = 1): void {
  if (!Number.isSafeInteger(value) || value < least)
    throw new RangeError(
      `${name} is ${shown(value)}: it must be a whole number of at least ${least}`,
    );
}

/** Throws a RangeError unless `value` is from 0 to 1. */
export function requirePart(name: string, value: number): void {
  if (typeof value !== "number" || !(value >= 0 && value <= 1))
    throw new RangeError(`${name} is ${shown(value)}: it must be between 0 and 1`);
}

/** Throws a TypeError unless there are schedules, and each is a function. */
export function requireSchedules(name: string, schedules: readonly unknown[]): void {
  if (!Array.isArray(schedules) || schedules.length === 0)
    throw new TypeError(`${name} takes at least one schedule: pass cosine(…) and the like`);
  const wrong = schedules.find((each) => typeof each !== "function");
  if (wrong !== undefined || schedules.includes(undefined))
    throw new TypeError(
      `${name} takes schedules, not ${shown(wrong)}: pass constant(lr) for a rate that stays`,
    );
}

/** From `start` at part 0 to `end` at part 1, along half a cosine. */
export const annealed = (start: number, end: number, part: number): number =>
  end + ((start - end) / 2) * (Math.cos(Math.PI * part) + 1);
