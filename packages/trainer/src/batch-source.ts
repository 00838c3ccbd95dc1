import { said } from "./option-kinds.js";
import { type Fingerprint, fingerprintOf, isOverwritten } from "./overwritten-batch.js";
import { aborted, untilAborted } from "./until-aborted.js";

/** Batches, available synchronously or asynchronously. */
export type Batches<Batch> = Iterable<Batch> | AsyncIterable<Batch>;

/**
 * Takes the batches of an epoch, some at a time, with a look-ahead of one. A signal ends waits for the loader: they give `aborted` then, also
 * where the loader fails after it.
 */
export class BatchSource<Batch> {
  readonly #iterator: Iterator<Batch> | AsyncIterator<Batch>;
  readonly #signal: AbortSignal | undefined;
  #next: IteratorResult<Batch> | undefined;
  /** Whether the signal has ended a wait: the loader still owes that batch. */
  #isAbandoned = false;

  /**
   * @param signal ends waits for the loader. Default: none does
   * @throws TypeError for what is not iterable
   */
  constructor(batches: Batches<Batch>, signal?: AbortSignal) {
    this.#iterator = iteratorOf(batches);
    this.#signal = signal;
  }

  /** Whether there is another batch. */
  async hasNext(): Promise<boolean | typeof aborted> {
    if (this.#isAbandoned) return aborted;
    this.#next ??= await this.#pull();
    return this.#next ? this.#next.done !== true : aborted;
  }

  /**
   * The next `count` batches; fewer at the end of the epoch.
   * @throws TypeError where the loader has written a batch over one before
   */
  async take(count: number): Promise<readonly Batch[] | typeof aborted> {
    const taken: Batch[] = [];
    const fingerprints: Fingerprint[] = [];
    while (taken.length < count) {
      const hasNext = await this.hasNext();
      if (hasNext === aborted) return aborted;
      if (!hasNext) break;
      const batch = (this.#next as IteratorYieldResult<Batch>).value;
      taken.push(batch);
      if (count > 1) fingerprints.push(fingerprintOf(batch));
      this.#next = undefined;
    }
    const overwritten = fingerprints.findIndex(isOverwritten);
    if (overwritten >= 0)
      throw new TypeError(
        `batch ${overwritten + 1} of ${taken.length} of a step has changed since it was taken: with accumulate: ${count} the batches of a step are used together, so each needs memory of its own`,
      );
    return taken;
  }

  /** Skips batches; returns how many there were. */
  async skip(count: number): Promise<number | typeof aborted> {
    for (let skipped = 0; skipped < count; skipped++) {
      const hasNext = await this.hasNext();
      if (hasNext === aborted) return aborted;
      if (!hasNext) return skipped;
      this.#next = undefined;
    }
    return count;
  }

  /** Closes the iterator of batches, which may release its resources. After the signal it may take no longer than a moment. */
  async close(): Promise<void> {
    if (this.#next?.done === true) return;
    const closing = (async () => this.#iterator.return?.())();
    // A generator that waits for something closes only when that comes.
    if (this.#isAbandoned) closing.catch(() => {});
    else await untilAborted(closing, this.#signal);
  }

  /** Undefined where the signal has ended the wait. */
  async #pull(): Promise<IteratorResult<Batch> | undefined> {
    try {
      const next = this.#iterator.next();
      // What is there already needs no wait.
      if (!("then" in next)) return next;
      const pulled = await untilAborted(next, this.#signal);
      if (pulled !== aborted) return pulled;
    } catch (error) {
      if (!this.#signal?.aborted) throw error;
    }
    this.#isAbandoned = true;
    return undefined;
  }
}

function iteratorOf<Batch>(batches: Batches<Batch>): Iterator<Batch> | AsyncIterator<Batch> {
  const given = batches as Partial<Iterable<Batch> & AsyncIterable<Batch>> | null | undefined;
  const iterator = given?.[Symbol.asyncIterator]?.() ?? given?.[Symbol.iterator]?.();
  if (iterator) return iterator;
  throw new TypeError(
    `batches is ${said(batches)}: it must be an iterable of batches, such as an array or a generator`,
  );
}
