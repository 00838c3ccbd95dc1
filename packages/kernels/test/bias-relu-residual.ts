import type { ElementwiseProgram } from "../src/elementwise.js";
import { add, relu } from "../src/expressions.js";

/** An epilogue of a product: adds a bias by columns, takes relu, and adds a residual. */
export const biasReluAndResidual: ElementwiseProgram = {
  inputs: ["same", "row", "same"],
  steps: [
    { expression: add, operands: [0, 1] },
    { expression: relu, operands: [3] },
    { expression: add, operands: [4, 2] },
  ],
  outputs: [2],
};
