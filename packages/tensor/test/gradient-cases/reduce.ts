import type { Tensor } from "../../src/index.js";
import * as ops from "../../src/ops/index.js";
import { type FamilyCases, on, reduction } from "./builders.js";

/** Sums and means. */
export const reduceCases: FamilyCases = {
  sum: reduction(ops.sum),
  mean: reduction(ops.mean),
  sumTo: {
    second: "checked",
    cases: (
      [
        [[2, 3], [3]],
        [
          [2, 3],
          [2, 1],
        ],
        [
          [4, 2, 3],
          [1, 3],
        ],
      ] as const
    ).map(([from, to]) => on(`to [${to}]`, [from], ([x]) => ops.sumTo(x as Tensor, to))),
  },
};
