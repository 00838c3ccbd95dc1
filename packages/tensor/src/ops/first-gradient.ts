import type { Tensor } from "../tensor/tensor.js";

/** The gradients of an op's inputs where only the first of them has one. */
export const firstGradient = (
  inputs: readonly Tensor[],
  gradient: Tensor,
): readonly (Tensor | undefined)[] => inputs.map((_, i) => (i === 0 ? gradient : undefined));
