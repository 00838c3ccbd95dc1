export { DigitsCnn, type DigitsCnnOptions } from "./digits-cnn.js";
export { Mlp, type MlpOptions } from "./mlp.js";
