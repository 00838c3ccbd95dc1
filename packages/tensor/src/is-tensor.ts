import type { Tensor } from "./tensor.js";

/** What tensors have, and nothing else. Files that tensors are made of cannot import the class to ask for it. */
export const tensorMark: unique symbol = Symbol("tensor");

export const isTensor = (value: unknown): value is Tensor =>
  typeof value === "object" && value !== null && tensorMark in value;
