import type { Tensor } from "../../src/index.js";
import * as ops from "../../src/ops/functional.js";
import type { GradientCase } from "../gradient-check.js";
import { type FamilyCases, type OpCases, on, type Shape } from "./builders.js";

const of = (name: string, shape: Shape, apply: (x: Tensor) => Tensor): GradientCase =>
  on(name, [shape], ([x]) => apply(x as Tensor).square());

const checked = (...cases: readonly GradientCase[]): OpCases => ({ second: "checked", cases });

const image: Shape = [2, 4, 5, 2];

/** Input, weights, biases and states. */
const lstmShapes: readonly Shape[] = [[3, 2, 2], [16, 2], [16, 4], [16], [16], [2, 4], [2, 4]];
const gruShapes: readonly Shape[] = [[2, 2, 2], [12, 2], [12, 4], [12], [12], [2, 4]];

/** The functions of the entry `functional`. */
export const furtherCases: FamilyCases = {
  clone: checked(of("a copy", [2, 3], (x) => ops.clone(x))),
  repeat: checked(
    of("in both dimensions", [2, 3], (x) => ops.repeat(x, [2, 2])),
    of("in a new one", [2], (x) => ops.repeat(x, [2, 1, 3])),
  ),
  tile: checked(of("in the last dimension", [2, 2], (x) => ops.tile(x, [3]))),
  tril: checked(
    of("of a matrix", [3, 4], (x) => ops.tril(x)),
    of("above the diagonal", [2, 3, 3], (x) => ops.tril(x, { diagonal: 1 })),
  ),
  triu: checked(of("of a matrix", [4, 3], (x) => ops.triu(x, { diagonal: -1 }))),
  index: checked(
    of("one, some and new", [3, 4, 2], (x) =>
      ops.index(x, [-1, { start: 1, end: 4, step: 2 }, "new", "all"]),
    ),
    on("by places", [[3, 4]], ([x], runtime) =>
      ops.index(x as Tensor, ["all", runtime.tensor(Uint32Array.of(3, 0, 3))]).square(),
    ),
    on("by two", [[2, 3, 2]], ([x], runtime) => {
      const [rows, columns] = [Int32Array.of(1, -2), Int32Array.of(-1, -1)];
      return ops
        .index(x as Tensor, [runtime.tensor(rows), "all", runtime.tensor(columns)])
        .square();
    }),
  ),
  outer: checked(on("two vectors", [[3], [2]], ([a, b]) => ops.outer(a as Tensor, b as Tensor))),
  lerp: checked(
    on("near", [[2, 3], [3]], ([a, b]) => ops.lerp(a as Tensor, b as Tensor, 0.3)),
    on("far", [[3], [3]], ([a, b]) => ops.lerp(a as Tensor, b as Tensor, 0.7)),
    on("by a tensor", [[2, 3], [3], [2, 3]], ([a, b, w]) =>
      ops.lerp(a as Tensor, b as Tensor, w as Tensor),
    ),
  ),
  sort: checked(
    of("last axis", [2, 4], (x) => ops.sort(x).values),
    of("first axis, descending", [3, 2], (x) => ops.sort(x, { axis: 0, descending: true }).values),
  ),
  median: checked(
    of("of four", [2, 4], (x) => ops.median(x, -1).values),
    of("of columns, kept", [3, 2], (x) => ops.median(x, 0, { keepDimensions: true }).values),
    of("of all", [2, 3], (x) => ops.median(x)),
  ),
  unfold: checked(
    of("padded", image, (x) => ops.unfold(x, { window: 3, padding: 1 })),
    of("strided", image, (x) =>
      ops.unfold(x, { window: [2, 1], stride: [1, 2], dilation: [2, 1] }),
    ),
  ),
  fold: checked(
    of("padded", [1, 12, 8], (x) => ops.fold(x, [3, 2], { window: 2, padding: 1 })),
    of("strided", [1, 4, 6], (x) => ops.fold(x, [4, 5], { window: [2, 3], stride: 2 })),
  ),
  adaptiveAvgPool1d: checked(of("of seven", [2, 7, 3], (x) => ops.adaptiveAvgPool1d(x, 3))),
  adaptiveAvgPool2d: checked(
    of("a divisor", [1, 4, 6, 2], (x) => ops.adaptiveAvgPool2d(x, [2, 3])),
    of("overlapping", [2, 5, 3, 2], (x) => ops.adaptiveAvgPool2d(x, [3, 2])),
  ),
  maxPool1d: checked(
    of("of three", [2, 7, 2], (x) => ops.maxPool1d(x, { window: 3, stride: 2, padding: 1 })),
  ),
  avgPool1d: checked(of("of two", [2, 6, 3], (x) => ops.avgPool1d(x, { window: 2 }))),
  instanceNorm: checked(
    on("weighted", [[2, 2, 3, 2], [2], [2]], ([x, w, b]) =>
      ops.instanceNorm(x as Tensor, w, b).square(),
    ),
  ),
  pixelShuffle: checked(of("by 2", [1, 2, 2, 8], (x) => ops.pixelShuffle(x, 2))),
  pixelUnshuffle: checked(of("by 2", [1, 4, 2, 3], (x) => ops.pixelUnshuffle(x, 2))),
  conv3d: checked(
    on("padded", [[1, 3, 3, 2, 2], [2, 2, 2, 2, 3], [3]], ([x, w, b]) =>
      ops.conv3d(x as Tensor, w as Tensor, b, { padding: 1 }),
    ),
    on(
      "strided, of groups",
      [
        [1, 3, 3, 2, 2],
        [2, 1, 2, 1, 2],
      ],
      ([x, w]) =>
        ops.conv3d(x as Tensor, w as Tensor, undefined, {
          stride: [1, 2, 1],
          dilation: [2, 1, 1],
          groups: 2,
        }),
    ),
  ),
  lstm: {
    second: "refused",
    cases: [
      on(
        "all parameters and states",
        lstmShapes,
        ([x, weightIh, weightHh, biasIh, biasHh, h, c]) => {
          const weights = { weightIh, weightHh, biasIh, biasHh } as ops.RecurrentWeights;
          const { output, cell } = ops.lstm(x as Tensor, weights, { hidden: h, cell: c });
          return output.add(cell);
        },
      ),
      on(
        "backwards, of three units",
        [
          [2, 2, 1],
          [12, 1],
          [12, 3],
        ],
        ([x, weightIh, weightHh]) =>
          ops.lstm(x as Tensor, { weightIh, weightHh } as ops.RecurrentWeights, { reverse: true })
            .hidden,
      ),
    ],
  },
  gru: {
    second: "refused",
    cases: [
      on(
        "all parameters and the state",
        gruShapes,
        ([x, weightIh, weightHh, biasIh, biasHh, h]) => {
          const weights = { weightIh, weightHh, biasIh, biasHh } as ops.RecurrentWeights;
          return ops.gru(x as Tensor, weights, { hidden: h }).output;
        },
      ),
    ],
  },
  scan: checked(
    on("a state and a weight", [[3, 2, 2], [2], [2, 2]], ([x, w, first]) => {
      const [last, all] = ops.scan(
        (state, each) => {
          const next = state.mul(w as Tensor).add(each.mul(each));
          return [next, next.mul(state)];
        },
        first as Tensor,
        x as Tensor,
      );
      return all.add(last);
    }),
    on("backwards", [[2, 3]], ([x]) => {
      const step = (state: Tensor, each: Tensor) => [state.mul(each), state] as const;
      const [last, all] = ops.scan(step, (x as Tensor).select(0, 1), x as Tensor, {
        reverse: true,
      });
      return all.mul(last);
    }),
  ),
  ctcLoss: {
    second: "refused",
    cases: [
      on("labels that repeat", [[4, 2, 3]], ([x], runtime) => {
        const of = (...values: number[]) => runtime.tensor(Uint32Array.from(values));
        const targets = of(1, 1, 2, 2).reshape([2, 2]);
        return ops.ctcLoss(x as Tensor, targets, of(4, 4), of(2, 1), { reduction: "none" });
      }),
    ],
  },
};
