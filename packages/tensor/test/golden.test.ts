import { readFileSync } from "node:fs";
import { requestTestDevice } from "@halfstep/device/testing";
import { expect, test } from "vitest";
import { cpuRuntime, gpuRuntime, type Runtime, type Tensor } from "../src/index.js";
import * as ops from "../src/ops/index.js";
import { type ForwardCase, forwardMismatches, places } from "./forward-check.js";
import { type GradientsByTorch, gradientsUnlikeTorch } from "./golden.js";

/** Values and gradients by torch: see golden/ops.py. */
interface Golden {
  readonly inputs: readonly {
    readonly shape: readonly number[];
    readonly values: readonly number[];
  }[];
  readonly shape: readonly number[];
  readonly values: readonly number[];
  /** Null of masks and places. */
  readonly gradients: GradientsByTorch["gradients"] | null;
}

const golden = JSON.parse(
  readFileSync(new URL("golden/ops.json", import.meta.url), "utf8"),
) as Readonly<Record<string, Golden>>;

type Apply = (x: readonly Tensor[], runtime: Runtime) => Tensor;

const one =
  (apply: (x: Tensor) => Tensor): Apply =>
  ([x]) =>
    apply(x as Tensor);

const two =
  (apply: (x: Tensor, y: Tensor) => Tensor): Apply =>
  ([x, y]) =>
    apply(x as Tensor, y as Tensor);

const byMethod = (...names: readonly (keyof Tensor)[]): Readonly<Record<string, Apply>> =>
  Object.fromEntries(
    names.map((name) => [
      name,
      ([x, ...more]: readonly Tensor[]) =>
        (x as unknown as Record<keyof Tensor, (...more: readonly Tensor[]) => Tensor>)[name](
          ...more,
        ) as Tensor,
    ]),
  );

/** Indices of a flat list of torch's in a shape. */
const indexed =
  (
    shape: readonly number[],
    values: readonly number[],
    apply: (x: Tensor, index: Tensor, source: Tensor) => Tensor,
  ): Apply =>
  ([x, source], runtime) =>
    apply(x as Tensor, runtime.tensor(Uint32Array.from(values), shape), source as Tensor);

/** Places in the first two dimensions. */
const pairs = (runtime: Runtime, columns: readonly number[]): Tensor[] =>
  [[2, 0, 2], columns].map((values) => runtime.tensor(Uint32Array.from(values)));

const repeated = [0, 4, 2, 2, 1, 3, 0, 0, 4, 4, 3, 1];
const distinct = [0, 4, 2, 2, 1, 3, 0, 0, 4, 2, 3, 1];

const computed: Readonly<Record<string, Apply>> = {
  ...byMethod("expm1", "sin", "cos", "tan", "atan", "sinh", "cosh", "abs", "sign", "floor"),
  ...byMethod("ceil", "round", "erf", "asin", "acos", "erfinv", "log1p", "log2", "log10", "rsqrt"),
  ...byMethod("maximum", "minimum", "eq", "ne", "lt", "le", "gt", "ge", "gelu", "silu"),
  atan2: two((y, x) => ops.atan2(y, x)),
  "gelu by tanh": one((x) => x.gelu({ approximate: "tanh" })),
  elu: one((x) => x.elu(0.7)),
  leakyRelu: one((x) => x.leakyRelu(0.3)),
  clamp: one((x) => x.clamp({ min: -0.5, max: 1 })),
  hardtanh: one((x) => ops.hardtanh(x)),
  softplus: one((x) => x.softplus({ beta: 2, threshold: 3 })),
  prelu: two((x, weight) => ops.prelu(x, weight)),
  "pow by 3": one((x) => x.pow(3)),
  "pow by -1.5": one((x) => x.pow(-1.5)),
  "pow by a tensor": two((x, y) => x.pow(y)),
  addcmul: ([x, a, b]) => ops.addcmul(x as Tensor, a as Tensor, b as Tensor, -0.5),
  addcdiv: ([x, a, b]) => ops.addcdiv(x as Tensor, a as Tensor, b as Tensor, 2),
  maskedFill: one((x) => x.maskedFill(x.gt(1), -3)),
  where: two((x, y) => x.where(x.gt(y), y.mul(2))),
  prod: one((x) => x.prod()),
  "prod of rows": one((x) => x.prod(1, { keepDimensions: true })),
  amax: one((x) => x.amax([0, 2])),
  amin: one((x) => x.amin(1)),
  max: one((x) => x.max(1).values),
  "max's places": one((x) => x.max(1).indices),
  "min's places": one((x) => x.min(2).indices),
  topK: one((x) => x.topK(3, { axis: 1 }).values),
  "topK's places": one((x) => x.topK(3, { axis: 1 }).indices),
  "topK of the smallest": one((x) => x.topK(2, { axis: 0, largest: false }).values),
  any: one((x) => ops.any(x.gt(1.5), 1)),
  all: one((x) => ops.all(x.gt(-1.5), 2)),
  variance: one((x) => x.variance({ axes: [0, 2] })),
  std: one((x) => x.std({ axes: 1, correction: 0 })),
  logsumexp: one((x) => x.logsumexp({ axes: [0, 1] })),
  norm: one((x) => x.norm({ axes: 1 })),
  "norm of 1": one((x) => x.norm({ ord: 1 })),
  "norm of 3": one((x) => ops.linalgVectorNorm(x, { ord: 3, axes: [0, 2] })),
  "norm of infinity": one((x) => x.norm({ ord: Number.POSITIVE_INFINITY, axes: 0 })),
  cumsum: one((x) => x.cumsum(1)),
  cumprod: one((x) => x.cumprod(2)),
  "cumsum of rows": one((x) => x.cumsum(1)),
  slice: one((x) => x.slice(1, { start: 1, end: 5, step: 2 })),
  select: one((x) => x.select(1, -2)),
  pad: one((x) =>
    ops.pad(
      x,
      [
        [0, 1],
        [-1, 2],
        [1, 0],
      ],
      0.5,
    ),
  ),
  flip: one((x) => x.flip([0, 1])),
  roll: one((x) => x.roll(2, 1)),
  transpose: one((x) => x.transpose(0, 2)),
  cat: (x) => ops.cat(x, 1),
  stack: (x) => ops.stack(x, -1),
  gather: indexed([3, 2, 2], repeated, (x, index) => x.gather(1, index)),
  scatterAdd: indexed([3, 2, 2], repeated, (x, index, s) => x.scatterAdd(1, index, s)),
  scatter: indexed([3, 2, 2], distinct, (x, index, s) => ops.scatter(x, 1, index, s)),
  indexSelect: indexed([3], [3, 0, 3], (x, index) => x.indexSelect(1, index)),
  indexPut: indexed([2], [2, 0], (x, index, values) => ops.indexPut(x, index, values)),
  "indexPut, added": indexed([3], [2, 0, 2], (x, index, values) =>
    ops.indexPut(x, index, values, { accumulate: true }),
  ),
  "indexPut by two": ([x, values], runtime) =>
    ops.indexPut(x as Tensor, pairs(runtime, [4, 1, 0]), values as Tensor),
  "indexPut by two, added": ([x, values], runtime) =>
    ops.indexPut(x as Tensor, pairs(runtime, [4, 1, 4]), values as Tensor, { accumulate: true }),
  embedding: indexed([2, 3], [1, 5, 1, 0, 0, 3], (weight, index) => ops.embedding(index, weight)),
  upsampleNearest2d: one((x) => ops.upsampleNearest2d(x, { scale: 2 })),
  "upsampleNearest2d to a size": one((x) => ops.upsampleNearest2d(x, { size: [7, 4] })),
  upsampleBilinear2d: one((x) => ops.upsampleBilinear2d(x, { size: [6, 3] })),
  "upsampleBilinear2d, corners": one((x) =>
    ops.upsampleBilinear2d(x, { size: [4, 9], alignCorners: true }),
  ),
  upsampleBicubic2d: one((x) => ops.upsampleBicubic2d(x, { size: [6, 3] })),
  "upsampleBicubic2d, align_corners": one((x) =>
    ops.upsampleBicubic2d(x, { size: [4, 9], alignCorners: true }),
  ),
  "upsampleNearest2d, exact": one((x) => ops.upsampleNearest2d(x, { size: [7, 4], exact: true })),
  upsampleNearest1d: one((x) => ops.upsampleNearest1d(x, { size: [8] })),
  upsampleLinear1d: one((x) => ops.upsampleLinear1d(x, { size: [3] })),
  upsampleNearest3d: one((x) => ops.upsampleNearest3d(x, { scale: 2, exact: true })),
  upsampleTrilinear3d: one((x) =>
    ops.upsampleTrilinear3d(x, { size: [3, 2, 5], alignCorners: true }),
  ),
  gridSampler: two((x, grid) => ops.gridSampler(x, grid)),
  "gridSampler, padding_mode border, align_corners True": two((x, grid) =>
    ops.gridSampler(x, grid, { padding: "border", alignCorners: true }),
  ),
  "gridSampler, padding_mode reflection": two((x, grid) =>
    ops.gridSampler(x, grid, { padding: "reflection" }),
  ),
  "gridSampler, padding_mode reflection, align_corners True": two((x, grid) =>
    ops.gridSampler(x, grid, { padding: "reflection", alignCorners: true }),
  ),
  "gridSampler, mode nearest": two((x, grid) => ops.gridSampler(x, grid, { mode: "nearest" })),
  dot: two(ops.dot),
  cross: two((a, b) => ops.cross(a, b, 1)),
  tensordot: two((a, b) =>
    ops.tensordot(a, b, [
      [2, 1],
      [0, 1],
    ]),
  ),
  bilinear: ([a, b, weight, bias]) =>
    ops.bilinear(a as Tensor, b as Tensor, weight as Tensor, bias as Tensor),
};

const cases = Object.entries(golden).map(
  ([name, { inputs, shape, values }]): ForwardCase => ({
    name,
    inputs: inputs.map((x) => ({ shape: x.shape, values: Float64Array.from(x.values) })),
    apply: (x, runtime) => (computed[name] as Apply)(x, runtime),
    expected: () => values,
    shape,
  }),
);

test("every op of torch's file is computed", () => {
  expect(Object.keys(computed).sort()).toEqual(Object.keys(golden).sort());
});

test.each(places.filter(([place]) => place === "CPU"))(
  "ops give torch's values: %s, %s",
  async (_, dtype, open) => {
    expect(await forwardMismatches(await open(), dtype, cases)).toEqual([]);
  },
);

// The tests of expressions run them on the GPU in float32, in which they compute for every storage.
const withKernels = cases.slice(cases.findIndex(({ name }) => name === "prod"));

test.each(places.filter(([place, dtype]) => place !== "CPU" && dtype !== "float32"))(
  "ops with kernels of their own give torch's values: %s, %s",
  async (_, dtype, open) => {
    expect(await forwardMismatches(await open(), dtype, withKernels)).toEqual([]);
  },
);

const differentiable = cases.flatMap((each): GradientsByTorch[] => {
  const gradients = golden[each.name]?.gradients;
  return gradients ? [{ ...each, gradients }] : [];
});

test("gradients are torch's: CPU", async () => {
  const runtime = cpuRuntime({ arithmetic: "float64" });
  expect(await gradientsUnlikeTorch(runtime, differentiable)).toEqual([]);
});

// gradients.test.ts compares the GPU with float64 for every op: an eighth of the cases suffices here.
test("gradients are torch's: GPU", async () => {
  const runtime = gpuRuntime(await requestTestDevice());
  const some = differentiable.filter((_, i) => i % 8 === 0);
  expect(await gradientsUnlikeTorch(runtime, some, 2e-5)).toEqual([]);
});
