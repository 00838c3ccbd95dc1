import type { AmpPrimitives, Gradient, StateWords } from "../primitives.js";
import { OUTCOME_WORDS, STATE_WORDS } from "../primitives.js";

/** An implementation under test, with functions to write and read its buffers and losses. */
export interface AmpPrimitivesHarness<B, L = B> {
  readonly primitives: AmpPrimitives<B, L>;
  /** Makes a buffer of float32 gradients. */
  upload(values: Float32Array): B | Promise<B>;
  /** All elements of such a buffer. */
  download(buffer: B): Promise<Float32Array>;
  /** Where losses are not buffers: the same for float32 losses of one element. */
  readonly losses?: {
    upload(values: Float32Array): L | Promise<L>;
    download(loss: L): Promise<Float32Array>;
  };
}

/** A test of the contract. Throws an error that describes the difference. */
export type ContractTest = <B, L>(harness: AmpPrimitivesHarness<B, L>) => Promise<void>;

export const gradient = <B>(buffer: B, length: number): Gradient<B> => ({
  buffer,
  dtype: "float32",
  offset: 0,
  length,
  name: "contract",
});

/** A new state buffer; words that are not given are 0. */
export function stateOf<B, L>(
  primitives: AmpPrimitives<B, L>,
  words: readonly [scale: number, ...(readonly number[])],
): B {
  const state = primitives.allocate(STATE_WORDS);
  const rest = new Array<number>(STATE_WORDS - words.length).fill(0);
  primitives.writeState(state, [...words, ...rest] as unknown as StateWords);
  return state;
}

/** Numbers in [0, 1) from a linear congruence, so that all machines test the same traces. */
export function uniform(seed: number): () => number {
  let state = (Math.trunc(seed) ^ 0x9e3779b9) >>> 0;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

/** Float32 numbers of either sign from about 2^-60 to 2^60, so that no product with a test's scale is subnormal. */
export function normals(length: number, seed: number, octaves = 60): Float32Array {
  const random = uniform(seed);
  return Float32Array.from(
    { length },
    () =>
      (random() < 0.5 ? -1 : 1) *
      (1 + random()) *
      2 ** Math.floor(random() * 2 * octaves - octaves),
  );
}

const wordNames = [
  ...["tag", "flags", "scale before", "scale after", "causes"],
  ...["gradient norm", "underflow", "all zero"],
];

/** The name of the ring's word at an index. */
export const ringLabel = (i: number): string =>
  `slot ${Math.floor(i / OUTCOME_WORDS)}, ${wordNames[i % OUTCOME_WORDS]}`;

/** Compares bits, so that -0 is not 0, and throws one error that names the first differences. */
export function same(
  what: string,
  found: ArrayLike<number>,
  expected: ArrayLike<number>,
  label: (index: number) => string = (index) => `element ${index}`,
): void {
  const foundBits = bitsOf(found);
  const expectedBits = bitsOf(expected);
  const wrong: string[] = [];
  for (let i = 0; i < Math.max(foundBits.length, expectedBits.length); i += 1) {
    if (foundBits[i] !== expectedBits[i]) {
      wrong.push(`${label(i)}: expected ${expected[i]}, found ${found[i]}`);
    }
  }
  if (wrong.length === 0) return;
  const shown = wrong.slice(0, 5).join("; ");
  throw new Error(`${what}: ${wrong.length} of ${expectedBits.length} differ: ${shown}`);
}

/** Throws unless two numbers agree to float32 accuracy. */
export function near(what: string, found: number | undefined, expected: number): void {
  if (found !== undefined && Math.abs(found - expected) <= 1e-5 * Math.abs(expected)) return;
  throw new Error(`${what}: expected ${expected}, found ${found}`);
}

const bitsOf = (values: ArrayLike<number>): Uint32Array =>
  new Uint32Array(Float32Array.from(values).buffer);
