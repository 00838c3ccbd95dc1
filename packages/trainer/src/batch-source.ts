/** Batches, at hand or still on their way. */
export type Batches<Batch> = Iterable<Batch> | AsyncIterable<Batch>;

/** The batches of an epoch, some at a time; it knows whether there is another. */
export class BatchSource<Batch> {
  readonly #iterator: Iterator<Batch> | AsyncIterator<Batch>;
  #next: IteratorResult<Batch> | undefined;

  constructor(batches: Batches<Batch>) {
    this.#iterator =
      Symbol.asyncIterator in batches
        ? batches[Symbol.asyncIterator]()
        : batches[Symbol.iterator]();
  }

  /** Whether there is another batch. */
  async hasNext(): Promise<boolean> {
    this.#next ??= await this.#iterator.next();
    return this.#next.done !== true;
  }

  /** The next batches, fewer where the epoch ends. */
  async take(count: number): Promise<readonly Batch[]> {
    const taken: Batch[] = [];
    while (taken.length < count && (await this.hasNext())) {
      taken.push((this.#next as IteratorYieldResult<Batch>).value);
      this.#next = undefined;
    }
    return taken;
  }

  /** Leaves batches out; returns how many there were. */
  async skip(count: number): Promise<number> {
    let skipped = 0;
    while (skipped < count && (await this.hasNext())) {
      this.#next = undefined;
      skipped++;
    }
    return skipped;
  }

  /** Lets whoever makes the batches give up what they hold. */
  async close(): Promise<void> {
    if (this.#next?.done !== true) await this.#iterator.return?.();
  }
}
