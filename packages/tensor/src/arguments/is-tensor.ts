import type { Tensor } from "../tensor/tensor.js";

/** For files that tensors are made of, which cannot import the class to ask for it. */
export const isTensor = (value: unknown): value is Tensor =>
  typeof value === "object" && value !== null && "isTensor" in value;
