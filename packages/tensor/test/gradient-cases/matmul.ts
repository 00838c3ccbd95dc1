import type { Tensor } from "../../src/index.js";
import * as ops from "../../src/ops/index.js";
import { type FamilyCases, type OpCases, on, type Pair } from "./builders.js";

const products: OpCases = {
  second: "checked",
  cases: [
    ...[false, true].flatMap((transA) =>
      [false, true].flatMap((transB) =>
        (
          [
            [[], []],
            [[2], [2]],
            [[2], []],
            [[], [2]],
          ] as const
        ).map(([batchA, batchB]) =>
          on(
            `${transA ? "A transposed " : ""}${transB ? "B transposed" : ""}`,
            [
              [...batchA, ...(transA ? [4, 3] : [3, 4])],
              [...batchB, ...(transB ? [2, 4] : [4, 2])],
            ],
            (inputs) => ops.matmul(inputs, { transA, transB }),
          ),
        ),
      ),
    ),
    on("a matrix with itself", [[3, 3]], ([x]) => ops.matmul([x, x] as unknown as Pair, {})),
    on("a matrix with its transpose", [[2, 3]], ([x]) =>
      ops.matmul([x, x] as unknown as Pair, { transB: true }),
    ),
  ],
};

const linears: OpCases = {
  second: "checked",
  cases: [
    on(
      "no bias",
      [
        [3, 4],
        [2, 4],
      ],
      ([x, w]) => ops.linear(x as Tensor, w as Tensor),
    ),
    on("bias", [[3, 4], [2, 4], [2]], ([x, w, b]) => ops.linear(x as Tensor, w as Tensor, b)),
    on("batches", [[2, 3, 2], [4, 2], [4]], ([x, w, b]) => ops.linear(x as Tensor, w as Tensor, b)),
  ],
};

/** Matrix products. */
export const matmulCases: FamilyCases = {
  matmul: products,
  linear: linears,
};
