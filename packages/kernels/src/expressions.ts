export * from "./expressions/activations.js";
export * from "./expressions/arithmetic.js";
export * from "./expressions/comparison.js";
export { erf, erfinv } from "./expressions/error-function.js";
export {
  cosh,
  exp,
  expm1,
  log,
  log1p,
  log2,
  log10,
  pow,
  powTensor,
  sinh,
  softplus,
  softplusBackward,
  tanh,
} from "./expressions/exponential.js";
export * from "./expressions/of-integers.js";
export { acos, asin, atan, atan2, cos, sin, tan } from "./expressions/trigonometric.js";
