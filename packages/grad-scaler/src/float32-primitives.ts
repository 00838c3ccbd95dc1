import {
  type AmpPrimitives,
  type Gradient,
  OUTCOME_RING,
  OUTCOME_WORDS,
  type ScaleUpdate,
  type StateWords,
} from "./primitives.js";
import { nextScaleState } from "./rule.js";

/**
 * The primitives over `Float32Array`s, where everything happens at once: the reference that other implementations are
 * compared with. Gradients must be stored as float32. A loss may have any number of elements.
 */
export const float32Primitives: AmpPrimitives<Float32Array> = {
  allocate: (length) => new Float32Array(length),

  writeState: (state, words) => state.set(words),

  scaleLoss: (loss, state) => loss.map((value) => value * word(state, 0)),

  check(gradients, foundInf) {
    for (const gradient of gradients) {
      if (!elements(gradient).every(Number.isFinite)) foundInf[0] = 1;
    }
  },

  unscale(gradients, state, foundInf) {
    float32Primitives.check(gradients, foundInf);
    const inverseScale = word(state, 1);
    if (inverseScale === 1) return;
    for (const gradient of gradients) {
      const values = elements(gradient);
      for (let i = 0; i < values.length; i += 1) values[i] = word(values, i) * inverseScale;
    }
  },

  updateScale({ state, foundInfs, rule, newScale, outcomes, tag }: ScaleUpdate<Float32Array>) {
    const flags = foundInfs.reduce((sum, found, i) => sum + (found[0] === 0 ? 0 : 2 ** i), 0);
    for (const found of foundInfs) found[0] = 0;
    const [scale, , growthTracker, hysteresisTracker] = state as unknown as StateWords;
    const before = { scale, growthTracker, hysteresisTracker };
    const after =
      newScale === undefined
        ? nextScaleState(before, flags !== 0, rule)
        : { ...before, scale: newScale };
    const tracker = after.hysteresisTracker ?? hysteresisTracker;
    state.set([after.scale, 1 / after.scale, after.growthTracker, tracker]);
    if (tag !== 0) {
      const slot = (tag - 1) % OUTCOME_RING;
      outcomes.set([tag, flags, scale, after.scale], slot * OUTCOME_WORDS);
    }
  },

  read: async (buffer) => buffer.slice(),
};

const word = (words: Float32Array, index: number): number => words[index] as number;

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
