export { ScaleCollapseError, type ScalerMistake, ScalerStateError } from "./errors.js";
export { float32Primitives } from "./float32-primitives.js";
export { GradScaler, type GradScalerOptions } from "./grad-scaler.js";
export type { OutcomeSchedule } from "./outcome-reader.js";
export type { OutcomeStream } from "./outcomes.js";
export type {
  AmpPrimitives,
  Gradient,
  ScaledOptimizer,
  ScaledStep,
  ScaleUpdate,
  StateWords,
} from "./primitives.js";
export { OUTCOME_RING, OUTCOME_WORDS, STATE_WORDS } from "./primitives.js";
export {
  initialScaleState,
  nextScaleState,
  type ScaleRule,
  type ScalerPreset,
  type ScaleState,
  scalerRule,
} from "./rule.js";
export type { SkipMode } from "./stages.js";
export type { ScalerStateDict } from "./state-dict.js";
export type { StepOutcome, StepStatus } from "./step-outcome.js";
