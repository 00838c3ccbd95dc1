export type {
  AmpPrimitives,
  Gradient,
  ScaledOptimizer,
  ScaledStep,
  ScaleUpdate,
  StateWords,
} from "./primitives.js";
export { OUTCOME_RING, OUTCOME_WORDS, STATE_WORDS } from "./primitives.js";
export type { ScaleRule, ScaleState } from "./rule.js";
