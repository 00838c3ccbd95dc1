export {
  type AccumulationWindow,
  accumulationWindow,
  type WindowSize,
} from "./accumulation-window.js";
export { ScaleCollapseError, type ScalerMistake, ScalerStateError } from "./errors.js";
export { float32Primitives } from "./float32-primitives.js";
export { GradScaler, type GradScalerOptions } from "./grad-scaler.js";
export { type GradientState, gradientState, marksOf } from "./gradient-state.js";
export type { OutcomeSchedule } from "./outcome-reader.js";
export type { OutcomeStream } from "./outcomes.js";
export { type ScalerPreset, scalerRule } from "./presets.js";
export type {
  AmpPrimitives,
  Gradient,
  GradientMark,
  MarkedGradient,
  Origin,
  OriginFinder,
  OutcomeWords,
  ScaledOptimizer,
  ScaledStep,
  ScaleMark,
  ScaleUpdate,
  SquareSum,
  StateWords,
} from "./primitives.js";
export { FLAG_WORDS, OUTCOME_RING, OUTCOME_WORDS, STATE_WORDS } from "./primitives.js";
export {
  initialScaleState,
  nextScale,
  nextScaleState,
  type ScaleRule,
  type ScaleState,
} from "./rule.js";
export { type Scaled, scaledValue } from "./scaled.js";
export type { SkipMode } from "./stages.js";
export {
  type LossScaleDict,
  type ScalerStateDict,
  stateOfWords,
  type TorchScalerStateDict,
  wordsOfState,
} from "./state-dict.js";
export type {
  LossOutcome,
  OverflowCause,
  OverflowOrigin,
  StepOutcome,
  StepStatus,
  UnderflowOrigin,
  ZeroGradients,
} from "./step-outcome.js";
export type { LossOptions } from "./stepper.js";
export { EXPONENT_BINS, EXPONENT_WORDS, underflowShare, underflowShift } from "./underflow.js";
