import type { Tensor } from "../../src/index.js";
import * as ops from "../../src/ops/index.js";
import { type FamilyCases, on } from "./builders.js";

/** Ops that move elements. */
export const shapeCases: FamilyCases = {
  expand: {
    second: "checked",
    cases: (
      [
        [[3], [2, 3]],
        [
          [2, 1],
          [2, 4],
        ],
        [
          [1, 3],
          [2, 2, 3],
        ],
        [[], [2]],
      ] as const
    ).map(([from, to]) => on(`to [${to}]`, [from], ([x]) => ops.expand(x as Tensor, to).square())),
  },
  reshape: {
    second: "checked",
    cases: [on("to [3, -1]", [[2, 6]], ([x]) => ops.reshape(x as Tensor, [3, -1]).square())],
  },
  permute: {
    second: "checked",
    cases: (
      [
        [
          [2, 3],
          [1, 0],
        ],
        [
          [2, 3, 4],
          [2, 0, 1],
        ],
        [
          [1, 2, 3, 2],
          [0, 3, 1, 2],
        ],
      ] as const
    ).map(([shape, order]) =>
      on(`by [${order}]`, [shape], ([x]) => ops.permute(x as Tensor, order).square()),
    ),
  },
};
