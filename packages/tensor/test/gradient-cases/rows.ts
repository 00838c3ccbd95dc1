import type { Tensor } from "../../src/index.js";
import * as ops from "../../src/ops/index.js";
import { type FamilyCases, labels, on, overRows } from "./builders.js";

/** Softmax and the losses over rows. */
export const rowCases: FamilyCases = {
  softmax: overRows(ops.softmax),
  logSoftmax: overRows(ops.logSoftmax),
  crossEntropy: {
    second: "checked",
    cases: (["mean", "sum", "none"] as const).flatMap((reduction) =>
      [
        [3, 4],
        [1, 5],
      ].map((shape) =>
        on(`${reduction}`, [shape], ([x], runtime) =>
          ops.crossEntropy(x as Tensor, labels(runtime, ...(shape as [number, number])), {
            reduction,
          }),
        ),
      ),
    ),
  },
};
