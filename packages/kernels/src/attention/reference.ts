import type { KernelView } from "@halfstep/device";
import { paddedWidth } from "./padded.js";
import type { PassViews } from "./pass.js";

/** The scalar product of so many elements of two views. */
export function product(
  a: KernelView,
  aStart: number,
  b: KernelView,
  bStart: number,
  count: number,
): number {
  let sum = 0;
  for (let i = 0; i < count; i++) sum += (a[aStart + i] as number) * (b[bStart + i] as number);
  return sum;
}

/**
 * Calls `visit` for each query, counted over all entries, and each key that it sees, with the gradient of their score and with
 * their probability as dropout leaves it.
 */
export function eachScoreGradient(
  views: PassViews,
  visit: (query: number, key: number, scoreGradient: number, probability: number) => void,
): void {
  const { query: q, key: k, value: v, entries, queries, keys, size, width, scale } = views;
  const { limit, shown, kept } = views;
  const [g, statistics] = views.others as [KernelView, KernelView];
  for (let entry = 0; entry < entries; entry++)
    for (let query = 0; query < queries; query++) {
      const row = entry * queries + query;
      const seen = limit(entry, query);
      const [logSum, average] = [statistics[row * 2] as number, statistics[row * 2 + 1] as number];
      for (let key = 0; key < seen; key++) {
        const position = entry * keys + key;
        const score = product(q, row * size, k, position * size, size) * scale;
        const p = Math.exp(shown(score, entry, query, key) - logSum);
        const change = product(g, row * width, v, position * width, width);
        const scoreGradient = p * (kept(change, entry, query, key) - average);
        visit(row, position, scoreGradient, kept(p, entry, query, key));
      }
    }
}

/** Adds the row `from` of `x`, times a factor, to the row `to` of the sums. */
export function addRow(
  sums: Float64Array,
  to: number,
  x: KernelView,
  from: number,
  width: number,
  factor: number,
): void {
  const [start, source] = [to * width, from * width];
  for (let i = 0; i < width; i++)
    sums[start + i] = (sums[start + i] as number) + factor * (x[source + i] as number);
}

/** Stores rows as programs do: padded to whole quads. */
export function setRows(out: KernelView, rows: Float64Array, width: number): void {
  const stride = paddedWidth(width);
  for (let row = 0; row * width < rows.length; row++)
    out.set(rows.subarray(row * width, (row + 1) * width), row * stride);
}
