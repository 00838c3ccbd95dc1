import type { Tensor } from "../../src/index.js";
import * as ops from "../../src/ops/index.js";
import type { GradientCase } from "../gradient-check.js";
import { type FamilyCases, labels, type OpCases, on, size } from "./builders.js";

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

const classWeight = [0.5, 2, 1.5];

/** A loss of scores against labels, some of which repeat. */
const classified = (
  loss: typeof ops.crossEntropy,
  shape: readonly number[],
  options: ops.CrossEntropyOptions,
  weight?: readonly number[],
): GradientCase =>
  on(`${weight ? "weighted " : ""}${JSON.stringify(options)}`, [shape], ([x], runtime) => {
    const classes = shape.at(-1) as number;
    const target = labels(runtime, size(shape) / classes, classes).reshape(shape.slice(0, -1));
    return loss(x as Tensor, target, {
      ...options,
      ...(weight && { weight: runtime.tensor(weight) }),
    });
  });

/** Softmax and the losses over rows. */
export const rowCases: FamilyCases = {
  softmax: overAxes(ops.softmax),
  logSoftmax: overAxes(ops.logSoftmax),
  softmin: overAxes(ops.softmin),
  crossEntropy: {
    second: "checked",
    cases: [
      ...(["mean", "sum", "none"] as const).flatMap((reduction) =>
        [
          [3, 4],
          [1, 5],
          [2, 2, 3],
        ].map((shape) => classified(ops.crossEntropy, shape, { reduction })),
      ),
      classified(ops.crossEntropy, [4, 3], { ignoreIndex: 1 }),
      classified(ops.crossEntropy, [4, 3], { labelSmoothing: 0.2, ignoreIndex: 0 }),
      classified(ops.crossEntropy, [4, 3], { labelSmoothing: 0.2 }, classWeight),
      classified(ops.crossEntropy, [4, 3], { reduction: "sum" }, classWeight),
      classified(ops.crossEntropy, [4, 3], { labelSmoothing: 0.2, ignoreIndex: 1 }, classWeight),
      on(
        "probabilities",
        [
          [3, 4],
          [3, 4],
        ],
        ([x, p]) => ops.crossEntropy(x as Tensor, p as Tensor, { labelSmoothing: 0.1 }),
      ),
    ],
  },
  nllLoss: {
    second: "checked",
    cases: [
      classified(ops.nllLoss, [4, 3], {}),
      classified(ops.nllLoss, [2, 2, 3], { reduction: "none", ignoreIndex: 1 }),
      classified(ops.nllLoss, [4, 3], {}, classWeight),
    ],
  },
};
