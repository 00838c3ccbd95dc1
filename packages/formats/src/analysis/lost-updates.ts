import { type Numbers, roundArray } from "../arrays.js";
import { checkFormat, type FloatFormat } from "../format.js";
import { numbersOf } from "../numbers-of.js";

/** The rounding of updates added to weights that are stored in a format. Shares are from 0 to 1. */
export interface LostUpdates {
  /** Number of finite updates that are not 0, of finite weights: the base of the shares. */
  readonly updates: number;
  /** Share of updates that do not change the weight. */
  readonly lost: number;
  /** Share of updates that change the weight by a different amount. */
  readonly partial: number;
  /** Mean of |change − update| / |update|: 0 where none is lost, 1 where all are. */
  readonly meanRelativeError: number;
}

const chunkLength = 8192;

/**
 * Adds each update to its weight as an optimizer with weights in this format would: the weight has the format, and the
 * float64 sum is rounded to nearest even. Sums that overflow are counted in `updates` only. Memory is constant, except for
 * decoded copies of arrays of codes.
 *
 * Updates are lost below half a unit of the weight, and partly lost below many units. Therefore AMP keeps float32 master
 * weights (Micikevicius and others, "Mixed precision training", 2018, section 3.1).
 * @param updates the updates, such as −lr · gradient.
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
