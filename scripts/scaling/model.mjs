// t = compute + exposed(α, β, readiness): how long a step takes over a network, from what it takes without one.

/** Milliseconds of a collective in which every rank sends `bytes` to each of the others, over a link with `latency` (α) and `bytesPerMs` (β). */
const collectiveTime = ({ latency, bytesPerMs }, bytes, ranks) =>
  latency + (bytes * (ranks - 1)) / bytesPerMs;

/**
 * The milliseconds of a step over a network. A bucket is sent when it is ready and those before it were; a second collective of it waits for
 * the first and for the sums of the host.
 *
 * `alone` is a step of two ranks that was measured without a network: its milliseconds, and its collectives. Of each it has the time at which
 * it began, the bytes for each other rank, and whether it is the second one of a bucket. A bucket without a second one was sent whole; more
 * ranks send chunks of it, then means. `link` has a `latency` (α) and `bytesPerMs` (β).
 */
export function stepTime(alone, link, ranks = 2) {
  const { step, calls } = alone;
  let end = 0;
  let sums = 0;
  for (const [i, { begin, isSecond }] of calls.entries()) {
    if (isSecond) sums = begin - calls[i - 1].begin;
    const start = isSecond ? end + sums : Math.max(begin, i === 0 ? 0 : end + sums);
    end = start + callTime(calls, i, link, ranks);
  }
  const last = calls.at(-1);
  return last ? end + (step - last.begin) : step;
}

/** The milliseconds of what was one collective of two ranks. */
function callTime(calls, i, link, ranks) {
  const { bytes, isSecond } = calls[i];
  // A few bytes, such as a flag, are no part of a bucket.
  if (ranks === 2 || bytes < 64) return collectiveTime(link, bytes, ranks);
  const isWhole = !isSecond && !calls[i + 1]?.isSecond;
  if (isWhole) return 2 * collectiveTime(link, bytes / ranks, ranks);
  // Chunks of two ranks are halves of a bucket.
  return collectiveTime(link, (2 * bytes) / ranks, ranks);
}

/** The milliseconds that the collectives of a step take one after another. */
export const exchangeTime = ({ calls }, link, ranks = 2) =>
  calls.reduce((sum, _, i) => sum + callTime(calls, i, link, ranks), 0);

/** The latency of a collective of so many ranks: a line through those of two sizes. */
export function latencyOf(few, many) {
  const slope = Math.max(0, (many.latency - few.latency) / (many.ranks - few.ranks));
  return (ranks) => few.latency + slope * (ranks - few.ranks);
}

/** The least number of ranks, up to `most`, at which a condition holds; undefined where there is none. */
export function firstRanks(most, holds) {
  for (let ranks = 2; ranks <= most; ranks++) if (holds(ranks)) return ranks;
  return undefined;
}

/** The megabits a second at which the bytes of a step's exchange take so many milliseconds. */
export const rateFor = ({ calls }, milliseconds) =>
  Math.round(calls.reduce((sum, { bytes }) => sum + bytes, 0) / 125 / milliseconds);
