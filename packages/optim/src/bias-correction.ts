import { shown } from "./checks.js";
import type { RateColumns } from "./rate-table.js";

/** Columns `1 / (1 - beta1^t)` and `1 / sqrt(1 - beta2^t)` for applied steps t counted from 1, made in float64. */
export function biasCorrections([beta1, beta2]: readonly [number, number]): RateColumns {
  return {
    key: `${beta1},${beta2}`,
    settledAt: Math.max(settledAt(beta1), settledAt(beta2)),
    row: (step) => [1 / (1 - beta1 ** (step + 1)), 1 / Math.sqrt(1 - beta2 ** (step + 1)), 0],
  };
}

/** Where 1 - beta^t is 1 in float32, with a margin. */
export const settledAt = (beta: number): number =>
  beta === 0 ? 1 : Math.ceil((27 * Math.LN2) / -Math.log(beta)) + 1;

/** Throws a RangeError unless there are two, from 0 to less than 1. */
export function requireBetas(betas: readonly [number, number]): void {
  if (!Array.isArray(betas) || betas.length !== 2)
    throw new RangeError(`betas is ${shown(betas)}: give two numbers, [beta1, beta2]`);
  for (let i = 0; i < 2; i++) {
    const beta: unknown = betas[i];
    if (typeof beta !== "number" || !(beta >= 0 && beta < 1))
      throw new RangeError(`betas[${i}] is ${shown(beta)}: it must be at least 0 and less than 1`);
  }
}

/** Throws a RangeError for an eps that is negative, or that becomes 0 in float32 and so has no effect. */
export function requireEps(eps: number, name = "eps", suggestion = 1e-8): void {
  if (typeof eps !== "number" || !(eps >= 2 ** -126 && eps <= Number.MAX_VALUE))
    throw new RangeError(
      typeof eps === "number" && eps >= 0 && eps < 2 ** -126
        ? `${name} is ${eps}, which vanishes in float32, and parameters without gradient would become NaN: use ${suggestion}`
        : `${name} is ${shown(eps)}: it must be a number of at least 2^-126`,
    );
}

/** Columns of ones, for optimizers told not to correct. */
export const noBiasCorrections: RateColumns = {
  key: "none",
  settledAt: 1,
  row: () => [1, 1, 0],
};
