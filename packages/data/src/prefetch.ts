import { type Upcoming, upcoming } from "./ahead.js";
import { described, requireOptions, requireWhole } from "./checks.js";

/** Options of making batches ahead. */
export interface PrefetchOptions {
  /** Number of results that are in progress or waiting while one is used. Default 2. */
  readonly ahead?: number;
}

/**
 * Calls `make` for each item, in order and ahead of use: while one result is used the next ones are made, so that decoding
 * overlaps with training. An error is thrown in the place of its result. When the loop is left, calls in progress run to
 * their end, and their errors are ignored. Results wait while others are made: each needs memory of its own, without `into` of `gatherImages`.
 *
 * Of a sampler that `shuffledBatches` made, a batch counts when the loop has it: `sampler.state()` in the loop is the same as without
 * `prefetch`, and batches that were only made ahead come in the next loop. Pass the sampler itself: a generator around it takes batches
 * from it that no loop has seen.
 *
 * @throws RangeError unless `ahead` is a positive integer; TypeError for items and functions that are none. As all errors, in the loop.
 *
 * @example
 * for await (const batch of prefetch(sampler, decode, { ahead: 2 })) await step(batch);
 */
export async function* prefetch<Item, Made>(
  items: Iterable<Item>,
  make: (item: Item) => Promise<Made>,
  options: PrefetchOptions = {},
): AsyncGenerator<Made, void, undefined> {
  if (typeof (items as Partial<Iterable<Item>> | null)?.[Symbol.iterator] !== "function")
    throw new TypeError(
      `prefetch: items is ${described(items)}: pass an iterable, such as a sampler or an array`,
    );
  if (typeof make !== "function")
    throw new TypeError(
      `prefetch: make is ${described(make)}: pass a function that makes a result of an item`,
    );
  requireOptions("prefetch", options, ["ahead"]);
  const { ahead = 2 } = options;
  requireWhole("ahead", ahead, 1, Number.MAX_SAFE_INTEGER);
  const underWay: { readonly made: Promise<Made>; readonly taken: Upcoming<Item> }[] = [];
  const source = upcoming(items);
  // Synchronous errors of `make` also take the place of their result.
  const madeOf = async (item: Item): Promise<Made> => make(item);
  const begin = (): void => {
    const next = source.next();
    if (next.done) return;
    const made = madeOf(next.value.item);
    // Thrown when its turn comes; until then it must not count as unhandled.
    made.catch(() => {});
    underWay.push({ made, taken: next.value });
  };
  try {
    for (let i = 0; i <= ahead; i++) begin();
    for (let first = underWay.shift(); first; first = underWay.shift()) {
      const made = await first.made;
      first.taken.handOver();
      yield made;
      begin();
    }
  } finally {
    source.return(undefined);
  }
}
