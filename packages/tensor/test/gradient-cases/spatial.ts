import type { Op, Tensor } from "../../src/index.js";
import * as ops from "../../src/ops/index.js";
import type { GradientCase } from "../gradient-check.js";
import { type FamilyCases, type OpCases, on, type Shape } from "./builders.js";

const convolution = (input: Shape, weight: Shape, options: ops.Conv2dOptions = {}): GradientCase =>
  on(JSON.stringify(options), [input, weight], ([x, w]) =>
    ops.conv2d(x as Tensor, w as Tensor, undefined, options),
  );

const convolutions: OpCases = {
  second: "checked",
  cases: [
    convolution([1, 3, 3, 1], [2, 2, 1, 1]),
    convolution([2, 4, 3, 2], [3, 3, 2, 3], { padding: 1 }),
    convolution([1, 5, 4, 2], [3, 2, 2, 2], { stride: 2, padding: [1, 0] }),
    convolution([1, 5, 6, 1], [2, 3, 1, 2], { stride: [2, 3], padding: [0, 1] }),
    convolution([1, 5, 5, 1], [2, 2, 1, 2], { dilation: 2, padding: 1 }),
    convolution([2, 2, 2, 3], [1, 1, 3, 2]),
    convolution([1, 4, 3, 4], [2, 2, 2, 2], { groups: 2, padding: 1 }),
    convolution([1, 3, 4, 4], [2, 3, 1, 4], { groups: 4, stride: [1, 2], padding: [0, 1] }),
    on("bias", [[1, 3, 3, 2], [2, 2, 2, 3], [3]], ([x, w, b]) =>
      ops.conv2d(x as Tensor, w as Tensor, b),
    ),
  ],
};

/** A convolution with a bias for each of the result's channels. */
const other = <O>(
  op: (x: Tensor, w: Tensor, b?: Tensor, options?: O) => Tensor,
  shapes: readonly [Shape, Shape, Shape],
  options: O,
): GradientCase =>
  on(JSON.stringify(options), shapes, ([x, w, b]) => op(x as Tensor, w as Tensor, b, options));

const transposedConvolutions: OpCases = {
  second: "checked",
  cases: [
    other(ops.convTranspose2d, [[1, 3, 2, 2], [2, 2, 3, 2], [3]], {}),
    other(ops.convTranspose2d, [[2, 2, 3, 2], [3, 2, 1, 2], [1]], {
      stride: [2, 3],
      padding: [1, 0],
      outputPadding: [1, 2],
    }),
    other(ops.convTranspose2d, [[1, 2, 2, 4], [2, 2, 1, 4], [2]], { groups: 2, dilation: 2 }),
  ],
};

const pooling = (op: Op<ops.PoolOptions>, second: OpCases["second"]): OpCases => ({
  second,
  cases: (
    [
      [[2, 4, 4, 2], { window: 2 }],
      [[1, 5, 5, 1], { window: 2 }],
      [[1, 5, 4, 2], { window: 3, stride: 1, padding: 1 }],
      [[1, 5, 6, 1], { window: [3, 2], stride: [2, 1], padding: [1, 0] }],
    ] as const
  ).map(([shape, options]) =>
    on(JSON.stringify(options), [shape], ([x]) => op.apply([x as Tensor], options)),
  ),
});

/** Convolutions and pooling. */
export const spatialCases: FamilyCases = {
  conv2d: convolutions,
  conv1d: {
    second: "checked",
    cases: [
      other(ops.conv1d, [[2, 5, 2], [3, 2, 3], [3]], { padding: 1, stride: 2 }),
      other(ops.conv1d, [[1, 6, 4], [2, 2, 2], [2]], { groups: 2, dilation: 2 }),
    ],
  },
  convTranspose2d: transposedConvolutions,
  convTranspose1d: {
    second: "checked",
    cases: [
      other(ops.convTranspose1d, [[2, 3, 2], [3, 3, 2], [3]], { stride: 2, outputPadding: 1 }),
    ],
  },
  maxPool2d: pooling(ops.maxPool2d, "checked"),
  avgPool2d: pooling(ops.avgPool2d, "checked"),
};
