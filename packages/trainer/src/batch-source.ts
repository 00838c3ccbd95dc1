import { type Fingerprint, fingerprintOf, isOverwritten } from "./overwritten-batch.js";

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

  /**
   * The next `count` batches; fewer at the end of the epoch.
   * @throws TypeError where the loader has written a batch over one before
   */
  async take(count: number): Promise<readonly Batch[]> {
    const taken: Batch[] = [];
    const fingerprints: Fingerprint[] = [];
    while (taken.length < count && (await this.hasNext())) {
      const batch = (this.#next as IteratorYieldResult<Batch>).value;
      taken.push(batch);
      if (count > 1) fingerprints.push(fingerprintOf(batch));
      this.#next = undefined;
    }
    const overwritten = fingerprints.findIndex(isOverwritten);
    if (overwritten >= 0)
      throw new TypeError(
        `batch ${overwritten + 1} of ${taken.length} of a step has changed since it was taken: with accumulate: ${count} the batches of a step are used together, so each needs arrays of its own`,
      );
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
