import { Generator, type Runtime, type Tensor } from "../../src/index.js";
import * as ops from "../../src/ops/index.js";
import type { GradientCase } from "../gradient-check.js";
import { type FamilyCases, type OpCases, on } from "./builders.js";

const of = (
  name: string,
  apply: (x: Tensor, runtime: Runtime) => Tensor,
  shape: readonly number[] = [2, 3, 2],
): GradientCase => on(name, [shape], ([x], runtime) => apply(x as Tensor, runtime).square());

const checked = (...cases: OpCases["cases"]): OpCases => ({ second: "checked", cases });

const indices = (runtime: Runtime, shape: readonly number[], ...values: number[]): Tensor =>
  runtime.tensor(Uint32Array.from(values), shape);

const tensors = (x: readonly unknown[]): readonly Tensor[] => x as readonly Tensor[];

/** Moving elements by shape, by index, and by chance. */
export const indexingCases: FamilyCases = {
  slice: checked(
    of("the middle", (x) => ops.slice(x, 1, { start: 1, end: 3 })),
    of("every second", (x) => ops.slice(x, 0, { start: 1, step: 2 }), [5, 2]),
    of("from the end", (x) => ops.slice(x, -1, { start: -3, end: -1 }), [2, 4]),
  ),
  narrow: checked(of("rows", (x) => ops.narrow(x, 0, 1, 1))),
  select: checked(of("a column", (x) => ops.select(x, -1, -1))),
  split: checked(
    of("of two", (x) => {
      const [a, b] = tensors(ops.split(x, [1, 2], 1)) as [Tensor, Tensor];
      return a.mul(b);
    }),
  ),
  chunk: checked(
    of("of two", (x) => {
      const [a, b] = tensors(ops.chunk(x, 3, 1)) as [Tensor, Tensor];
      return a.mul(b);
    }),
  ),
  pad: checked(
    of("all around", (x) =>
      ops.pad(
        x,
        [
          [1, 0],
          [0, 2],
          [1, 1],
        ],
        3,
      ),
    ),
    of(
      "and cut",
      (x) =>
        ops.pad(x, [
          [-1, 2],
          [1, -1],
        ]),
      [3, 4],
    ),
  ),
  flip: checked(of("two axes", (x) => ops.flip(x, [0, -1]))),
  roll: checked(
    of("on", (x) => ops.roll(x, 4, 1)),
    of("back", (x) => ops.roll(x, -1, 0), [3]),
  ),
  transpose: checked(of("ends", (x) => ops.transpose(x, 0, -1))),
  unsqueeze: checked(of("last", (x) => ops.unsqueeze(x, -1))),
  squeeze: checked(of("first", (x) => ops.squeeze(x, 0), [1, 3])),
  cat: checked(
    on(
      "three",
      [
        [2, 1, 2],
        [2, 3, 2],
        [2, 2, 2],
      ],
      (x) => ops.cat(x, 1).square(),
    ),
    on("one twice", [[2, 2]], ([x]) => ops.cat([x, x] as Tensor[], -1).square()),
    on("nine", [[2]], ([x]) => ops.cat(Array<Tensor>(9).fill(x as Tensor)).square()),
  ),
  stack: checked(
    on(
      "two",
      [
        [2, 3],
        [2, 3],
      ],
      (x) => ops.stack(x, -1).square(),
    ),
  ),
  gather: checked(
    of("with repetitions", (x, runtime) =>
      ops.gather(x, 1, indices(runtime, [2, 4, 2], 0, 2, 1, 2, 0, 0, 2, 2, 1, 1, 1, 0, 0, 2, 0, 1)),
    ),
    of("fewer rows", (x, runtime) => ops.gather(x, -1, indices(runtime, [1, 2], 2, 0)), [2, 3]),
  ),
  scatter: checked(
    on(
      "distinct places",
      [
        [2, 3],
        [2, 2],
      ],
      ([x, source], runtime) =>
        ops
          .scatter(x as Tensor, 1, indices(runtime, [2, 2], 2, 0, 1, 2), source as Tensor)
          .square(),
    ),
  ),
  scatterAdd: checked(
    on(
      "repeated places",
      [
        [2, 3],
        [2, 4],
      ],
      ([x, source], runtime) => {
        const index = indices(runtime, [2, 4], 2, 0, 2, 2, 1, 1, 0, 1);
        return ops.scatterAdd(x as Tensor, 1, index, source as Tensor).square();
      },
    ),
  ),
  indexSelect: checked(
    of("of the middle axis", (x, runtime) =>
      ops.indexSelect(x, 1, indices(runtime, [4], 2, 0, 2, 1)),
    ),
    of("of quads", (x, runtime) => ops.indexSelect(x, 0, indices(runtime, [3], 2, 2, 0)), [3, 4]),
  ),
  indexPut: checked(
    on(
      "replace",
      [
        [4, 2],
        [2, 2],
      ],
      ([x, values], runtime) =>
        ops.indexPut(x as Tensor, indices(runtime, [2], 3, 0), values as Tensor).square(),
    ),
    on("accumulate a row", [[4, 3], [3]], ([x, values], runtime) =>
      ops
        .indexPut(x as Tensor, indices(runtime, [3], 3, 0, 3), values as Tensor, {
          accumulate: true,
        })
        .square(),
    ),
    on(
      "accumulate at pairs",
      [
        [3, 2, 2],
        [3, 2],
      ],
      ([x, values], runtime) =>
        ops
          .indexPut(
            x as Tensor,
            [indices(runtime, [3], 2, 0, 2), indices(runtime, [3], 1, 1, 1)],
            values as Tensor,
            { accumulate: true },
          )
          .square(),
    ),
  ),
  embedding: checked(
    of("words", (x, runtime) => ops.embedding(indices(runtime, [2, 2], 1, 0, 1, 2), x), [3, 4]),
  ),
  dropout: checked(
    of("half", (x) => ops.dropout(x, { generator: new Generator(3) })),
    of("a third", (x) => ops.dropout(x, { p: 1 / 3, generator: new Generator(4) }), [9]),
  ),
  upsampleNearest2d: checked(
    of("twice", (x) => ops.upsampleNearest2d(x, { scale: 2 }), [1, 2, 3, 2]),
    of("to a size", (x) => ops.upsampleNearest2d(x, { size: [2, 5] }), [1, 3, 2, 1]),
    of("exact", (x) => ops.upsampleNearest2d(x, { size: [2, 5], exact: true }), [1, 3, 2, 1]),
  ),
  upsampleNearest1d: checked(
    of("to a size", (x) => ops.upsampleNearest1d(x, { size: [4] }), [2, 3, 1]),
  ),
  upsampleNearest3d: checked(
    of("twice", (x) => ops.upsampleNearest3d(x, { scale: 2 }), [1, 1, 2, 1, 1]),
  ),
  upsampleLinear1d: checked(
    of("to a size", (x) => ops.upsampleLinear1d(x, { size: [2] }), [2, 3, 1]),
  ),
  upsampleTrilinear3d: checked(
    of("to a size", (x) => ops.upsampleTrilinear3d(x, { size: [1, 3, 2] }), [1, 2, 2, 1, 1]),
  ),
  upsampleBicubic2d: checked(
    of("to a size", (x) => ops.upsampleBicubic2d(x, { size: [2, 5] }), [1, 3, 2, 1]),
    of(
      "corners",
      (x) => ops.upsampleBicubic2d(x, { size: [4, 2], alignCorners: true }),
      [1, 2, 3, 1],
    ),
  ),
  upsampleBilinear2d: checked(
    of("by 1.7", (x) => ops.upsampleBilinear2d(x, { scale: 1.7 }), [1, 2, 3, 1]),
    of("twice", (x) => ops.upsampleBilinear2d(x, { scale: 2 }), [1, 2, 3, 2]),
    of(
      "corners",
      (x) => ops.upsampleBilinear2d(x, { size: [4, 2], alignCorners: true }),
      [1, 2, 3, 1],
    ),
  ),
  gridSampler: checked(
    on(
      "zeros outside",
      [
        [1, 2, 3, 2],
        [1, 2, 2, 2],
      ],
      ([x, grid]) => ops.gridSampler(x as Tensor, (grid as Tensor).mul(1.2)),
    ),
    on(
      "border, corners",
      [
        [2, 3, 2, 1],
        [2, 1, 3, 2],
      ],
      ([x, grid]) =>
        ops.gridSampler(x as Tensor, grid as Tensor, { padding: "border", alignCorners: true }),
    ),
    on(
      "mirrored",
      [
        [1, 3, 2, 1],
        [1, 2, 2, 2],
      ],
      ([x, grid]) =>
        ops.gridSampler(x as Tensor, (grid as Tensor).mul(2.3), { padding: "reflection" }),
    ),
  ),
  dot: checked(on("vectors", [[4], [4]], ([a, b]) => ops.dot(a as Tensor, b as Tensor))),
  vdot: checked(on("vectors", [[4], [4]], ([a, b]) => ops.vdot(a as Tensor, b as Tensor))),
  cross: checked(
    on(
      "last axis",
      [
        [2, 3],
        [2, 3],
      ],
      ([a, b]) => ops.cross(a as Tensor, b as Tensor),
    ),
    on(
      "first axis",
      [
        [3, 2],
        [3, 2],
      ],
      ([a, b]) => ops.cross(a as Tensor, b as Tensor, 0),
    ),
  ),
  tensordot: checked(
    on(
      "one pair",
      [
        [2, 3],
        [3, 2],
      ],
      ([a, b]) => ops.tensordot(a as Tensor, b as Tensor, 1),
    ),
    on(
      "named pairs",
      [
        [2, 3, 2],
        [2, 2, 3],
      ],
      ([a, b]) =>
        ops.tensordot(a as Tensor, b as Tensor, [
          [1, 0],
          [2, 0],
        ]),
    ),
  ),
  bilinear: checked(
    on("bias", [[2, 3], [2, 2], [2, 3, 2], [2]], ([a, b, w, bias]) =>
      ops.bilinear(a as Tensor, b as Tensor, w as Tensor, bias),
    ),
  ),
};
