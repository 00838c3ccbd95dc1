import { requireList, requireWhole } from "./checks.js";

/** The share of a rank in a batch. */
export interface Share<Samples> {
  readonly samples: Samples;
  /** Weight of the rank: its number of samples, or 0 where it only repeats one of another rank. */
  readonly weight: number;
  /** The place of the samples in the batch: `count` from number `first` on, of `total`. */
  readonly part: { readonly first: number; readonly count: number; readonly total: number };
}

/**
 * The share of one of several ranks in a batch of all. Shares follow each other in the order of ranks, and their sizes differ by at most
 * one: so the samples of a batch do not depend on the number of ranks. A rank for which nothing is left repeats the first sample, with
 * weight 0.
 *
 * @example
 * for (const batch of shuffledBatches({ count, batchSize: 32 * ranks, seed })) {
 *   const { samples, weight } = shareOf(batch, rank, ranks);
 *   …
 * }
 *
 * @throws RangeError where `ranks` is no whole number, `rank` is none of them, or the batch is empty; TypeError for what is no batch
 */
export function shareOf<
  Samples extends { readonly length: number; slice(from: number, to: number): Samples },
>(batch: Samples, rank: number, ranks: number): Share<Samples> {
  requireList("shareOf", "batch", batch, "an array of samples or of indices");
  requireWhole("ranks", ranks, 1, Number.MAX_SAFE_INTEGER);
  requireWhole("rank", rank, 0, ranks - 1);
  if (batch.length === 0) throw new RangeError("shareOf: the batch has no samples");
  const startOf = (each: number): number => Math.floor((batch.length * each) / ranks);
  const [first, end] = [startOf(rank), startOf(rank + 1)];
  const weight = end - first;
  const part =
    weight > 0
      ? { first, count: weight, total: batch.length }
      : { first: 0, count: 1, total: batch.length };
  return { samples: batch.slice(part.first, part.first + part.count), weight, part };
}
