import type { Tensor } from "../../src/index.js";
import * as ops from "../../src/ops/index.js";
import { type FamilyCases, labels, type OpCases, on } from "./builders.js";

const overAxes = (op: typeof ops.softmax): OpCases => ({
  second: "checked",
  cases: (
    [
      [[4], -1],
      [[3, 5], -1],
      [[2, 2, 3], -1],
      [[3, 1], -1],
      [[3, 2], 0],
      [[2, 3, 2], 1],
    ] as const
  ).map(([shape, axis]) => on(`over axis ${axis}`, [shape], ([x]) => op(x as Tensor, axis))),
});

/** Softmax and the losses over rows. */
export const rowCases: FamilyCases = {
  softmax: overAxes(ops.softmax),
  logSoftmax: overAxes(ops.logSoftmax),
  softmin: overAxes(ops.softmin),
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
