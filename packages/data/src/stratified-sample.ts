import { permutation } from "./batches.js";
import { requireList, requireWhole } from "./checks.js";

/**
 * Indices of a sample of a data set with its classes in proportion, ascending, for experiments on a part of it. Each class
 * gets its share, rounded so that all shares add up to `count` (largest remainders), and at least one sample if `count`
 * allows. The seed decides which ones. If the set has at most `count` samples, all are returned.
 *
 * @param labels the class of each sample
 * @throws RangeError unless `count` and `seed` are integers ≥ 0; TypeError for what are no labels
 *
 * @example
 * stratifiedSample([0, 0, 0, 0, 1, 1], 3, 7); // two of the first four places, and 4 or 5
 */
export function stratifiedSample(
  labels: ArrayLike<number>,
  count: number,
  seed: number,
): Uint32Array {
  requireList("stratifiedSample", "labels", labels, "an array with the class of each sample");
  requireWhole("count", count, 0, Number.MAX_SAFE_INTEGER);
  // Validates the seed for every set.
  const order = permutation(labels.length, seed, 0);
  if (count >= labels.length) return order.sort();
  const groups = new Map<number, number[]>();
  for (const place of order) {
    const label = labels[place] as number;
    const group = groups.get(label);
    if (group) group.push(place);
    else groups.set(label, [place]);
  }
  const byLabel = [...groups].sort(([a], [b]) => a - b).map(([, places]) => places);
  const shares = sharesOf(
    byLabel.map(({ length }) => length),
    count,
  );
  return Uint32Array.from(byLabel.flatMap((places, i) => places.slice(0, shares[i]))).sort();
}

/** The share of `count` for each group. */
function sharesOf(sizes: readonly number[], count: number): readonly number[] {
  const total = sizes.reduce((sum, size) => sum + size, 0);
  const exact = sizes.map((size) => (size * count) / total);
  // Every group has one sample before another has its second.
  const shares = exact.map((share) => (count < sizes.length ? 0 : Math.max(1, Math.floor(share))));
  const spread = (by: (group: number) => number, step: 1 | -1): void => {
    const groups = sizes.map((_, i) => i).sort((a, b) => by(b) - by(a) || a - b);
    let missing = count - shares.reduce((sum, share) => sum + share, 0);
    for (let i = 0; missing * step > 0; i = (i + 1) % groups.length) {
      const group = groups[i] as number;
      const share = (shares[group] as number) + step;
      if (share < 1 || share > (sizes[group] as number)) continue;
      shares[group] = share;
      missing -= step;
    }
  };
  const remainder = (group: number): number => (exact[group] as number) - (shares[group] as number);
  spread(remainder, 1);
  spread((group) => -remainder(group), -1);
  return shares;
}
