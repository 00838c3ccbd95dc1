/** Batches, available synchronously or asynchronously. */
export type Batches<Batch> = Iterable<Batch> | AsyncIterable<Batch>;

/** Takes the batches of an epoch, some at a time, with a look-ahead of one. */
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

  /** The next `count` batches; fewer at the end of the epoch. */
  async take(count: number): Promise<readonly Batch[]> {
    const taken: Batch[] = [];
    while (taken.length < count && (await this.hasNext())) {
      taken.push((this.#next as IteratorYieldResult<Batch>).value);
      this.#next = undefined;
    }
    return taken;
  }

  /** Skips batches; returns how many there were. */
  async skip(count: number): Promise<number> {
    let skipped = 0;
    while (skipped < count && (await this.hasNext())) {
      this.#next = undefined;
      skipped++;
    }
    return skipped;
  }

  /** Closes the iterator of batches, which may release its resources. */
  async close(): Promise<void> {
    if (this.#next?.done !== true) await this.#iterator.return?.();
  }
}
