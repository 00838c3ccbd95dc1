import { philox4x32 } from "@halfstep/formats/philox";

/**
 * Random numbers that depend only on a seed and a place, such as (epoch, tile), so that resumed training draws the same
 * numbers.
 */
export class RandomNumbers {
  readonly #key: readonly [number, number];
  readonly #place: readonly [number, number];
  #block = 0;
  #words: readonly number[] = [];
  #used = 0;

  /** @param seed a whole number from 0 on */
  constructor(seed: number, place: readonly [number, number]) {
    this.#key = [seed >>> 0, Math.floor(seed / 2 ** 32)];
    this.#place = place;
  }

  /** A whole number from 0 to `range` − 1, at most 2^32 of them. The bias, below `range` / 2^32, is negligible here. */
  below(range: number): number {
    if (this.#used === this.#words.length) {
      // Samplers of @halfstep/data have 0 in the last word, so these numbers are independent.
      this.#words = philox4x32([this.#block++, ...this.#place, 1], this.#key);
      this.#used = 0;
    }
    return Math.floor(((this.#words[this.#used++] as number) / 2 ** 32) * range);
  }
}
