import type { KernelView } from "@halfstep/device";
import type { HeadView, PassViews } from "./pass.js";

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

/** A query and one of its visible keys, the gradient of their score, and their probability after dropout. */
interface SeenKey {
  readonly entry: number;
  readonly query: number;
  readonly key: number;
  readonly scoreGradient: number;
  readonly probability: number;
}

/** Calls `visit` for each query of each entry and each of its visible keys. */
export function eachScoreGradient(views: PassViews, visit: (seen: SeenKey) => void): void {
  const { query: q, key: k, value: v, entries, queries, size, width, scale } = views;
  const { outGradient: g, statistics, first, limit, shown, kept } = views;
  for (let entry = 0; entry < entries; entry++)
    for (let query = 0; query < queries; query++) {
      const row = entry * queries + query;
      const seen = limit(entry, query);
      const [top, log, average] = [0, 1, 2].map((i) => statistics[row * 4 + i]) as [
        number,
        number,
        number,
      ];
      const [own, ownGradient] = [q.at(entry, query), g.at(entry, query)];
      for (let key = first(query); key < seen; key++) {
        const score = product(q.view, own, k.view, k.at(entry, key), size) * scale;
        const p = Math.exp(shown(score, entry, query, key) - top - log);
        const change = product(g.view, ownGradient, v.view, v.at(entry, key), width);
        const scoreGradient = p * (kept(change, entry, query, key) - average);
        const probability = kept(p, entry, query, key);
        visit({ entry, query, key, scoreGradient, probability });
      }
    }
}

/** Adds `width` elements of `x`, from `start` on, times a factor, to the row `to` of the sums. */
export function addRow(
  sums: Float64Array,
  to: number,
  x: KernelView,
  start: number,
  width: number,
  factor: number,
): void {
  const first = to * width;
  for (let i = 0; i < width; i++)
    sums[first + i] = (sums[first + i] as number) + factor * (x[start + i] as number);
}

/** Stores rows [entries, tokens, size] by the layout of a result. Each of them belongs to `group` entries of queries. */
export function setRows(
  { view, at }: HeadView,
  rows: Float64Array,
  {
    entries,
    group = 1,
    tokens,
    size,
  }: Readonly<Record<"entries" | "tokens" | "size", number>> & { readonly group?: number },
): void {
  for (let entry = 0; entry < entries; entry++)
    for (let token = 0; token < tokens; token++) {
      const row = (entry * tokens + token) * size;
      view.set(rows.subarray(row, row + size), at(entry * group, token));
    }
}
