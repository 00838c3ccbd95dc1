export * from "./expressions/activations.js";
export * from "./expressions/arithmetic.js";
export * from "./expressions/comparison.js";
export { erf } from "./expressions/error-function.js";
export * from "./expressions/exponential.js";
