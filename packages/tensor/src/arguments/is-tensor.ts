import type { Tensor } from "../tensor/tensor.js";

/** Whether a value is a tensor, for files that `Tensor` imports: they cannot import the class. */
export const isTensor = (value: unknown): value is Tensor =>
  typeof value === "object" && value !== null && (value as Partial<Tensor>).isTensor === true;
