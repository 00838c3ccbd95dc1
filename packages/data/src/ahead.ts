/** An item that is taken ahead of its use. */
export interface Upcoming<Item> {
  readonly item: Item;
  /**
   * Called when the item reaches its user: only then is it counted.
   * @throws Error where the source was moved since the item was taken
   */
  handOver(): void;
}

/** The items of an iterable; of one without a method `ahead`, which has no position, none is counted. */
export function* upcoming<Item>(items: Iterable<Item>): Generator<Upcoming<Item>> {
  const { ahead } = items as { readonly ahead?: () => Iterable<Upcoming<Item>> };
  if (typeof ahead === "function") yield* ahead.call(items);
  else for (const item of items) yield { item, handOver: () => {} };
}
