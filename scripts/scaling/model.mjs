// t = compute + exposed(α, β, readiness): how long a step takes over a network, from what it takes without one.

/** Milliseconds of a collective in which every rank sends `bytes` to each of the others, over a link with `latency` (α) and `bytesPerMs` (β). */
const collectiveTime = ({ latency, bytesPerMs }, bytes, ranks) =>
  latency + (bytes * (ranks - 1)) / bytesPerMs;

/**
 * The milliseconds of a step over a network. A bucket is sent when it is ready and those before it were; a second collective of it waits for
 * the first and for the sums of the host.
 *
 * `alone` is a step of two ranks that was measured without a network: its milliseconds, and its collectives. Of each it has the time at which
 * it began, the bytes for each other rank, and whether it is the second one of a bucket. Two ranks send each other whole buckets, in one
 * collective, where no bucket has a second one. More ranks send chunks, then means. `link` has a `latency` (α) and `bytesPerMs` (β).
 */
export function stepTime(alone, link, ranks = 2) {
  const { step, calls } = alone;
  let end = 0;
  let sums = 0;
  for (const [i, { begin, bytes, isSecond }] of calls.entries()) {
    if (isSecond) sums = begin - calls[i - 1].begin;
    const start = isSecond ? end + sums : Math.max(begin, i === 0 ? 0 : end + sums);
    end = start + callTime(alone, bytes, link, ranks);
  }
  const last = calls.at(-1);
  return last ? end + (step - last.begin) : step;
}

/** Chunks of two ranks are halves of a bucket. A few bytes, such as a flag, are no chunk of anything. */
const chunkOf = (bytes, ranks) => (bytes < 64 ? bytes : (2 * bytes) / ranks);

/** The milliseconds of what was one collective of two ranks. */
function callTime({ calls }, bytes, link, ranks) {
  const isWhole = calls.every(({ isSecond }) => !isSecond);
  if (isWhole && ranks > 2) return 2 * collectiveTime(link, bytes / ranks, ranks);
  return collectiveTime(link, isWhole ? bytes : chunkOf(bytes, ranks), ranks);
}

/** The milliseconds that the collectives of a step take one after another. */
export const exchangeTime = (alone, link, ranks = 2) =>
  alone.calls.reduce((sum, { bytes }) => sum + callTime(alone, bytes, link, ranks), 0);

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
