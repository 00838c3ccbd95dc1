import { philox4x32 } from "@halfstep/formats/philox";
import type { RandomSource } from "@halfstep/kernels";
import { noteDraw } from "../autograd/recomputation.js";
import type { Runtime } from "../tensor/runtime.js";

/** Distinguishes the numbers of this generator from those of other streams with the same seed. */
const stream = 0x6e6e;

/** The samples of a batch that this process has: `count` from number `first` on, of `total`. */
export interface BatchPart {
  readonly first: number;
  readonly count: number;
  readonly total: number;
}

/**
 * Generates random numbers by Philox4x32-10. Its whole state is (seed, offset), which the host has. On the host only integer
 * arithmetic and exactly rounded float64 operations are used, so that a seed gives the same bits on every machine; ops that draw
 * on the device take the words that the host would draw next.
 */
export class Generator {
  readonly seed: number;
  /** How many 32-bit words have been drawn. Set it to move backwards or forwards. */
  offset = 0;
  /**
   * Set where processes share each batch: tensors then hold these samples of the batch, in their first dimension, and get the numbers
   * that one process would draw for the samples; the generator moves on by those of the whole batch. A sample whose elements are no whole
   * number of quads gets other numbers. Undefined: tensors are whole.
   */
  part: BatchPart | undefined;
  /** The words of the latest block. */
  #words: ArrayLike<number> = [];
  #block = -1;

  /** @param seed a whole number from 0 to 2^53 − 1. */
  constructor(seed: number) {
    if (!Number.isSafeInteger(seed) || seed < 0)
      throw new RangeError(`a seed is a whole number from 0 to 2^53 − 1, not ${seed}`);
    this.seed = seed;
  }

  /** A uniform u32. */
  uint32(): number {
    noteDraw(this);
    const block = Math.floor(this.offset / 4);
    if (block !== this.#block) {
      this.#words = philox4x32(
        [block >>> 0, Math.floor(block / 2 ** 32), 0, stream],
        [this.seed >>> 0, Math.floor(this.seed / 2 ** 32)],
      );
      this.#block = block;
    }
    return this.#words[this.offset++ % 4] as number;
  }

  /**
   * Reserves words for a tensor, a block of four for each quad of its elements, and advances past them. A step that throws gives
   * them back; a step that the loss scaler skips does not.
   */
  take(runtime: Runtime, elements: number): RandomSource {
    noteDraw(this);
    const before = this.offset;
    const block = Math.ceil(before / 4);
    const { first, count, total } = this.part ?? { first: 0, count: 1, total: 1 };
    const quadsOf = (samples: number): number => Math.ceil((elements * samples) / (4 * count));
    this.offset = 4 * (block + quadsOf(total));
    runtime.recorder.onDrop(() => {
      this.offset = before;
    });
    return { seed: this.seed, block: block + quadsOf(first), stream };
  }

  /** A uniform number from [0, 1) on a grid of 2^-24, as float32 holds it. */
  uniform(): number {
    return (this.uint32() >>> 8) * 2 ** -24;
  }

  /** A number of the standard normal distribution, by Marsaglia's polar method. */
  normal(): number {
    for (;;) {
      const x = 2 * this.uniform() - 1;
      const y = 2 * this.uniform() - 1;
      const square = x * x + y * y;
      if (square > 0 && square < 1) return x * Math.sqrt((-2 * logarithm(square)) / square);
    }
  }
}

/** ln x for 0 < x < 1. Math.log may differ in its last bit from one engine to the next; this cannot. */
function logarithm(x: number): number {
  let exponent = 0;
  let mantissa = x;
  while (mantissa < Math.SQRT1_2) {
    mantissa *= 2;
    exponent--;
  }
  // ln m = 2 artanh((m − 1) / (m + 1)), whose argument is at most 0.172 in magnitude.
  const z = (mantissa - 1) / (mantissa + 1);
  const square = z * z;
  let sum = 0;
  for (let n = 21; n > 0; n -= 2) sum = sum * square + 1 / n;
  return exponent * Math.LN2 + 2 * z * sum;
}
