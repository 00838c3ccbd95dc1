import type { Tensor } from "../../src/index.js";
import * as ops from "../../src/ops/index.js";
import { type FamilyCases, type OpCases, on, type Shape, type Triple } from "./builders.js";

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
            (inputs) => ops.matmul.apply(inputs, { transA, transB }),
          ),
        ),
      ),
    ),
    ...(
      [
        [[4], [4]],
        [[4], [4, 2]],
        [[2, 3, 4], [4]],
        [[3], [2, 3, 2]],
        [
          [2, 1, 2, 3],
          [2, 3, 2],
        ],
      ] as const
    ).map((shapes) => on("any ranks", shapes, (inputs) => ops.matmul.apply(inputs, {}))),
    on("a matrix with itself", [[3, 3]], ([x]) => ops.matmul(x as Tensor, x as Tensor)),
    on("a matrix with its transpose", [[2, 3]], ([x]) =>
      ops.matmul(x as Tensor, x as Tensor, { transB: true }),
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
    ...(
      [
        ["batches", [2, 3, 2], [4, 2], [4]],
        ["a vector", [3], [2, 3], [2]],
        ["a bias for all", [2, 3], [2, 3], [1]],
        ["a bias for each row", [2, 3], [2, 3], [2, 2]],
        ["a batch of weights", [2, 2, 3], [2, 2, 3], [2]],
      ] as const
    ).map(([name, ...shapes]) =>
      on(name, shapes, ([x, w, b]) => ops.linear(x as Tensor, w as Tensor, b)),
    ),
  ],
};

const productsOf = (apply: typeof ops.mm, ...shapes: readonly Shape[]): OpCases => ({
  second: "checked",
  cases: [on("factors", shapes, ([a, b]) => apply(a as Tensor, b as Tensor))],
});

const addedTo = (apply: typeof ops.addmm, ...shapes: readonly Shape[]): OpCases => ({
  second: "checked",
  cases: [{}, { alpha: -0.5, beta: 2 }].map((options) =>
    on(JSON.stringify(options), shapes, (inputs) => apply(...(inputs as Triple), options)),
  ),
});

const sums: OpCases = {
  second: "checked",
  cases: (
    [
      ["ij,jk->ik", [2, 3], [3, 2]],
      ["bij,bkj->bki", [2, 2, 3], [2, 2, 3]],
      ["ij,ij->j", [2, 3], [2, 3]],
      ["i,jk->kij", [2], [3, 2]],
      ["ik,jkl,il->ij", [2, 3], [2, 3, 2], [2, 2]],
      ["ijk->ki", [2, 3, 2]],
      ["iij,jk->ik", [2, 2, 3], [3, 2]],
    ] as const
  ).map(([equation, ...shapes]) =>
    on(equation, shapes, (inputs) => ops.einsum(equation, ...inputs)),
  ),
};

/** Matrix products. */
export const matmulCases: FamilyCases = {
  matmul: products,
  linear: linears,
  mm: productsOf(ops.mm, [2, 3], [3, 4]),
  mv: productsOf(ops.mv, [2, 3], [3]),
  bmm: productsOf(ops.bmm, [2, 2, 3], [2, 3, 2]),
  addmm: addedTo(ops.addmm, [2], [3, 4], [4, 2]),
  addmv: addedTo(ops.addmv, [3], [3, 2], [2]),
  addr: addedTo(ops.addr, [3, 2], [3], [2]),
  addbmm: addedTo(ops.addbmm, [1, 2], [2, 3, 2], [2, 2, 2]),
  baddbmm: addedTo(ops.baddbmm, [2, 3, 2], [2, 3, 2], [2, 2, 2]),
  chainMatmul: {
    second: "checked",
    cases: [
      on(
        "three",
        [
          [2, 3],
          [3, 1],
          [1, 2],
        ],
        (inputs) => ops.chainMatmul(...inputs),
      ),
    ],
  },
  einsum: sums,
};
