import type { AmpPrimitives, Gradient, ScaleUpdate, StateWords } from "./primitives.js";
import { OUTCOME_RING, OUTCOME_WORDS } from "./primitives.js";
import { nextScale } from "./rule.js";
import { stateOfWords, wordsOfState } from "./state-dict.js";
import { underflowShare } from "./underflow.js";

/** Values of word 1 of a flag after `check`. */
const ALL_ZERO = 1;
const SOME_NOT_ZERO = 2;

/**
 * The primitives over `Float32Array`s, which take effect immediately: the reference for other implementations.
 * Gradients must be stored as float32. A loss may have any number of elements.
 */
export const float32Primitives: AmpPrimitives<Float32Array> = {
  allocate: (length) => new Float32Array(length),

  writeState: (state, words) => state.set(words),

  scaleLoss(loss, state, { weight, lossFlag }) {
    if (!(loss instanceof Float32Array)) {
      throw new TypeError(
        `the loss to scale is ${String(loss)}: pass a Float32Array, of one element or more.`,
      );
    }
    if (!loss.every(Number.isFinite)) lossFlag[0] = 1;
    return loss.map((value) => Math.fround(value * weight) * word(state, 0));
  },

  check(gradients, foundInf, sum) {
    for (const gradient of gradients) {
      const values = elements(gradient);
      if (!values.every(Number.isFinite)) foundInf[0] = 1;
      const seen = values.some((value) => value !== 0) ? SOME_NOT_ZERO : ALL_ZERO;
      foundInf[1] = Math.max(word(foundInf, 1), seen);
      if (sum) addSquares(values, word(sum.state, 1), sum.squares);
    }
  },

  unscale(gradients, state, foundInf, squares) {
    float32Primitives.check(gradients, foundInf, squares && { squares, state });
    const inverseScale = word(state, 1);
    if (inverseScale === 1) return;
    for (const gradient of gradients) {
      const values = elements(gradient);
      for (let i = 0; i < values.length; i += 1) values[i] = word(values, i) * inverseScale;
    }
  },

  normPartials: 1,

  countExponents(gradients, exponents) {
    for (const gradient of gradients) {
      const values = elements(gradient);
      const bits = new Uint32Array(values.buffer, values.byteOffset, values.length);
      for (const pattern of bits) {
        const field = (pattern >>> 23) & 0xff;
        exponents[field] = word(exponents, field) + 1;
      }
    }
  },

  rescale(gradients, from, to, foundInf) {
    float32Primitives.check(gradients, foundInf);
    for (const gradient of gradients) {
      const values = elements(gradient);
      for (const [i, value] of values.entries()) {
        values[i] = Number.isFinite(value) ? Math.fround(value * word(from, 1)) * word(to, 0) : 0;
      }
    }
  },

  combine(flags, into) {
    into[0] = flags.some((flag) => flag[0] !== 0) ? 1 : 0;
  },

  updateScale(update: ScaleUpdate<Float32Array>) {
    const { state, foundInfs, rule, newScale, lossFlag, squares, exponents, outcomes, tag } =
      update;
    const overflows = foundInfs.reduce((sum, found, i) => sum + (found[0] === 0 ? 0 : 2 ** i), 0);
    const words = [...state] as unknown as StateWords;
    const before = stateOfWords(words, rule);
    const next =
      newScale === undefined
        ? nextScale(before, overflows !== 0, rule, exponents)
        : { state: { ...before, scale: newScale }, isCollapse: false };
    state.set(wordsOfState(next.state, rule, words));
    if (tag !== 0) {
      const causes = (lossFlag[0] === 0 ? 0 : 1) + (next.isCollapse ? 2 : 0);
      const norm = squares ? word(squares, 0) : -1;
      const underflow = exponents ? underflowShare(exponents, rule.underflowFormat) : -1;
      const slot = (tag - 1) % OUTCOME_RING;
      const seen = Math.max(0, ...foundInfs.map((found) => word(found, 1)));
      const allZero = Number(seen === ALL_ZERO);
      const { scale } = next.state;
      const outcome = [tag, overflows, before.scale, scale, causes, norm, underflow, allZero];
      outcomes.set(outcome, slot * OUTCOME_WORDS);
    }
    for (const used of [...foundInfs, lossFlag, squares, exponents]) used?.fill(0);
  },

  read: async (buffer) => buffer.slice(),
};

const word = (words: Float32Array, index: number): number => words[index] as number;

/**
 * Adds squares to the squared norm so far. The word stores the norm, because squares would often exceed the range of
 * float32.
 */
function addSquares(values: Float32Array, inverseScale: number, squares: Float32Array): void {
  let sum = word(squares, 0) ** 2;
  for (const value of values) sum += Math.fround(value * inverseScale) ** 2;
  squares[0] = Math.sqrt(sum);
}

function elements({
  buffer,
  dtype,
  offset = 0,
  length,
  name,
}: Gradient<Float32Array>): Float32Array {
  if (dtype !== "float32") {
    throw new TypeError(
      `gradient ${name ?? "without a name"} is said to be ${dtype}: a Float32Array holds float32.`,
    );
  }
  const start = offset / Float32Array.BYTES_PER_ELEMENT;
  return buffer.subarray(start, length === undefined ? undefined : start + length);
}
