/** Options of making batches ahead. */
export interface PrefetchOptions {
  /** Number of results that are in progress or waiting while one is used. Default 2. */
  readonly ahead?: number;
}

/**
 * Calls `make` for each item, in order and ahead of use: while one result is used the next ones are made, so that decoding
 * overlaps with training. An error is thrown in the place of its result. When the loop is left, calls in progress run to
 * their end, and their errors are ignored.
 * @throws RangeError unless `ahead` is a positive integer
 *
 * @example
 * for await (const batch of prefetch(sampler, decode, { ahead: 2 })) await step(batch);
 */
export async function* prefetch<Item, Made>(
  items: Iterable<Item>,
  make: (item: Item) => Promise<Made>,
  { ahead = 2 }: PrefetchOptions = {},
): AsyncGenerator<Made, void, undefined> {
  if (!Number.isSafeInteger(ahead) || ahead < 1)
    throw new RangeError(`ahead is ${ahead}: it must be a whole number from 1 on`);
  const underWay: Promise<Made>[] = [];
  const source = items[Symbol.iterator]();
  // Synchronous errors of `make` also take the place of their result.
  const madeOf = async (item: Item): Promise<Made> => make(item);
  const begin = (): void => {
    const next = source.next();
    if (next.done) return;
    const made = madeOf(next.value);
    // Thrown when its turn comes; until then it must not count as unhandled.
    made.catch(() => {});
    underWay.push(made);
  };
  try {
    for (let i = 0; i <= ahead; i++) begin();
    for (let first = underWay.shift(); first; first = underWay.shift()) {
      const made = await first;
      yield made;
      begin();
    }
  } finally {
    source.return?.();
  }
}
