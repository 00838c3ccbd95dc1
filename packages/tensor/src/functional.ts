// The entry of functions alone: the first entry without the further methods of tensors, and functions that most programs do without.
export * from "./functions.js";
export * from "./ops/functional.js";
