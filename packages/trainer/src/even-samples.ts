/** Most samples that are kept. */
const most = 4096;

/** Samples of a run of any length, in bounded memory: all at first, then every second one, every fourth, and so on. */
export class EvenSamples<T> {
  #kept: T[] = [];
  #interval = 1;
  #count = 0;

  /** The kept samples, evenly spread over all that were added. */
  get kept(): readonly T[] {
    return this.#kept;
  }

  add(sample: T): void {
    if (this.#count++ % this.#interval !== 0) return;
    this.#kept.push(sample);
    if (this.#kept.length < most) return;
    this.#kept = this.#kept.filter((_, i) => i % 2 === 0);
    this.#interval *= 2;
  }
}
