import { type Numbers, roundArray } from "../arrays.js";
import { checkFormat, type FloatFormat } from "../format.js";
import { numbersOf } from "../numbers-of.js";

/** What becomes of updates added to weights that are stored in a format. Shares are from 0 to 1. */
export interface LostUpdates {
  /** Updates that are finite and not 0, of finite weights: what the shares are of. */
  readonly updates: number;
  /** Share of updates that leave the weight as it was. */
  readonly lost: number;
  /** Share of updates that change the weight, but by another amount than themselves. */
  readonly partial: number;
  /** Mean of |change − update| / |update|: 0 where all arrive, 1 where all are lost. */
  readonly meanRelativeError: number;
}

const chunkLength = 8192;

/**
 * Adds each update to its weight as an optimizer with weights in this format would: the weight is the format's, the sum is
 * float64's, and is rounded to nearest even. Sums that overflow are counted in `updates` alone. Memory is constant, but for
 * decoded copies of arrays of codes.
 *
 * Updates are lost below half a unit of the weight, and partly lost below many units: why AMP keeps float32 master weights
 * (Micikevicius et al., "Mixed precision training", 2018, section 3.1).
 * @param updates what is added, such as −lr · gradient.
 * @throws TypeError if these are no arrays of numbers, or `format` has no codes.
 * @throws RangeError if the arrays differ in length.
 */
export function lostUpdates(weights: Numbers, updates: Numbers, format: FloatFormat): LostUpdates {
  checkFormat("lostUpdates", format);
  const olds = numbersOf("lostUpdates", weights);
  const deltas = numbersOf("lostUpdates", updates);
  if (olds.length !== deltas.length) {
    throw new RangeError(
      `lostUpdates: ${olds.length} weights and ${deltas.length} updates: pass one update a weight`,
    );
  }
  const length = Math.min(chunkLength, olds.length);
  const sums = new Float64Array(length);
  const stored = new Float32Array(length);
  const results = new Float32Array(length);
  let total = 0;
  let lost = 0;
  let partial = 0;
  let compared = 0;
  let sumOfErrors = 0;
  for (let start = 0; start < olds.length; start += length) {
    const count = Math.min(length, olds.length - start);
    const isUpdate = (i: number): boolean =>
      Number.isFinite(olds[start + i]) &&
      Number.isFinite(deltas[start + i]) &&
      deltas[start + i] !== 0;
    const part = sums.subarray(0, count);
    for (let i = 0; i < count; i++) part[i] = isUpdate(i) ? (olds[start + i] as number) : 0;
    roundArray(part, format, stored);
    for (let i = 0; i < count; i++) {
      part[i] = isUpdate(i) ? (stored[i] as number) + (deltas[start + i] as number) : 0;
    }
    roundArray(part, format, results);
    for (let i = 0; i < count; i++) {
      if (!isUpdate(i)) continue;
      total += 1;
      const update = deltas[start + i] as number;
      const change = (results[i] as number) - (stored[i] as number);
      if (!Number.isFinite(change)) continue;
      compared += 1;
      if (change === 0) lost += 1;
      else if (change !== update) partial += 1;
      sumOfErrors += Math.abs((change - update) / update);
    }
  }
  const share = (part: number, whole: number): number => (whole === 0 ? 0 : part / whole);
  return {
    updates: total,
    lost: share(lost, total),
    partial: share(partial, total),
    meanRelativeError: share(sumOfErrors, compared),
  };
}
