import { philox4x32 } from "../philox.js";
import { kernels } from "../wasm/kernels.js";
import type { EncodeArrayOptions } from "./arguments.js";

/** Fills `into` with the random words of `count` elements from element `first` on, a multiple of 4. */
export type RandomWords = (first: number, count: number, into: Uint32Array) => void;

const nothing: RandomWords = () => {};

/**
 * The random words for the options: element i gets word i % 4 of a Philox4x32-10 generator. The counter is [i >> 2, 0,
 * offset's low half, its high half]. The key is [seed's low half, its high half].
 * @throws TypeError if the seed is missing, or given to another rounding than `"stochastic"`.
 * @throws RangeError if seed or offset is not a safe integer ≥ 0.
 */
export function randomWordsOf(
  operation: string,
  options: EncodeArrayOptions | undefined,
): RandomWords {
  if (options === undefined) return nothing;
  const { rounding = "nearestEven", seed, offset } = options;
  if (rounding !== "stochastic") {
    if (seed === undefined && offset === undefined) return nothing;
    throw new TypeError(
      `${operation}: seed and offset are for rounding "stochastic", not "${rounding}"; leave them out`,
    );
  }
  if (seed === undefined) {
    throw new TypeError(
      `${operation}: rounding "stochastic" needs a seed, so that the result can be had again; pass { seed }`,
    );
  }
  const [key0, key1] = halves(operation, "seed", seed);
  const [counter2, counter3] = halves(operation, "offset", offset ?? 0);
  return (first, count, into) => {
    const native = count >= 256 ? kernels() : undefined;
    if (native) {
      native.philox(count, first >>> 2, counter2, counter3, key0, key1);
      into.set(native.random.subarray(0, count));
      return;
    }
    for (let i = 0; i < count; i += 4) {
      const words = philox4x32([(first + i) >>> 2, 0, counter2, counter3], [key0, key1]);
      for (let word = 0; word < 4; word++) into[i + word] = words[word] as number;
    }
  };
}

function halves(operation: string, name: string, value: number): readonly [number, number] {
  if (!(Number.isSafeInteger(value) && value >= 0)) {
    throw new RangeError(
      `${operation}: ${name} is ${String(value)}; pass an integer from 0 to 2^53 − 1`,
    );
  }
  return [value >>> 0, Math.floor(value / 2 ** 32)];
}
