import { autocast, DTypeError } from "@halfstep/autocast";
import { expect, test } from "vitest";
import {
  type ForwardCase,
  forwardMismatches,
  places,
  scattered,
} from "../../test/forward-check.js";
import { cpuRuntime, ShapeError, type Tensor } from "../index.js";
import { groupNorm, layerNorm, rmsNorm } from "./index.js";

/** Normalises groups of numbers; `places` has the indices of each group. */
function normalized(
  x: readonly number[],
  groups: readonly (readonly number[])[],
  eps: number,
  isCentred = true,
): number[] {
  const result: number[] = [];
  for (const group of groups) {
    const average = (of: (i: number) => number): number =>
      group.reduce((sum, i) => sum + of(i), 0) / group.length;
    const mean = isCentred ? average((i) => x[i] as number) : 0;
    const deviation = Math.sqrt(average((i) => ((x[i] as number) - mean) ** 2) + eps);
    for (const i of group) result[i] = ((x[i] as number) - mean) / deviation;
  }
  return result;
}

const range = (length: number, at = 0): number[] => Array.from({ length }, (_, i) => at + i);
const rowsOf = (rows: number, width: number) => range(rows).map((r) => range(width, r * width));

/** Places of each group of channels in [2, 6, 4]. */
const channelGroups = (groups: number) =>
  range(2).flatMap((b) =>
    range(groups).map((g) =>
      range(6).flatMap((p) => range(4 / groups, (b * 6 + p) * 4 + (g * 4) / groups)),
    ),
  );

const affine = (
  values: readonly number[],
  weight: readonly number[] | undefined,
  bias?: readonly number[],
): number[] =>
  values.map((value, i) => {
    const c = weight ? i % weight.length : 0;
    return value * (weight?.[c] ?? 1) + (bias?.[c] ?? 0);
  });

const cases: readonly ForwardCase[] = [
  {
    name: "layer norm of rows",
    inputs: [scattered([5, 7]), scattered([7], 2), scattered([7], 3)],
    apply: ([x, w, b]) => layerNorm(x as Tensor, 7, w, b),
    expected: ([x, w, b]) => affine(normalized(x as number[], rowsOf(5, 7), 1e-5), w, b),
    shape: [5, 7],
  },
  {
    name: "layer norm of matrices, no parameters",
    inputs: [scattered([3, 2, 4])],
    apply: ([x]) => layerNorm(x as Tensor, [2, 4], undefined, undefined, { eps: 0.1 }),
    expected: ([x]) => normalized(x as number[], rowsOf(3, 8), 0.1),
    shape: [3, 2, 4],
  },
  {
    name: "RMS norm",
    inputs: [scattered([2, 3, 8]), scattered([8], 2)],
    apply: ([x, w]) => rmsNorm(x as Tensor, 8, w),
    expected: ([x, w]) => affine(normalized(x as number[], rowsOf(6, 8), 2 ** -23, false), w),
    shape: [2, 3, 8],
  },
  ...[1, 2, 4].map(
    (groups): ForwardCase => ({
      name: `group norm in ${groups}`,
      inputs: [scattered([2, 3, 2, 4]), scattered([4], 2), scattered([4], 3)],
      apply: ([x, w, b]) => groupNorm(x as Tensor, groups, w, b),
      expected: ([x, w, b]) => affine(normalized(x as number[], channelGroups(groups), 1e-5), w, b),
      shape: [2, 3, 2, 4],
    }),
  ),
];

test.each(places)("norms equal their formulas: %s, %s", async (_, dtype, open) => {
  expect(await forwardMismatches(await open(), dtype, cases)).toEqual([]);
});

test("under autocast half inputs give float32, and so do their gradients' sums", async () => {
  const runtime = cpuRuntime();
  const x = runtime.tensor([60000, -60000], [1, 2], { dtype: "float16", requiresGrad: true });
  const weight = runtime.tensor([1, 2], [2], { requiresGrad: true });
  const y = autocast({ dtype: "float16" }, () => layerNorm(x, 2, weight));
  expect(y.dtype).toBe("float32");
  expect([...(await y.toArray())]).toEqual([1, -2]);
  y.mul(y).sum().backward();
  expect([...((await weight.grad?.toArray()) ?? [])]).toEqual([2, 4]);
});

test("an empty batch has an empty result, and gradients of zero for the parameters", async () => {
  const runtime = cpuRuntime();
  const weight = runtime.tensor([1, 2], [2], { requiresGrad: true });
  const y = layerNorm(runtime.zeros([0, 2]), 2, weight);
  expect(y.shape).toEqual([0, 2]);
  y.sum().backward();
  expect([...((await weight.grad?.toArray()) ?? [])]).toEqual([0, 0]);
});

test("what does not fit is refused", () => {
  const runtime = cpuRuntime();
  const x = runtime.zeros([2, 4]);
  const refused: readonly [() => unknown, string][] = [
    [() => layerNorm(x, 3), "layerNorm: the input [2,4] does not end in the normalised shape [3]"],
    [() => layerNorm(x, []), "layerNorm: the input [2,4] does not end in the normalised shape []"],
    [
      () => layerNorm(x, 4, runtime.zeros([2])),
      "layerNorm: weight and bias need the shape [4], not [2]",
    ],
    [() => groupNorm(runtime.zeros([2, 0]), 2), "groupNorm: [2,0] has no channels"],
    [() => groupNorm(x, 3), "of shape [2,4] cannot be divided into 3 groups of channels"],
    [() => groupNorm(runtime.zeros([2, 0, 4]), 2), "has no pixels"],
  ];
  for (const [call, message] of refused) {
    expect(call).toThrow(ShapeError);
    expect(call).toThrow(message);
  }
  const indices = runtime.tensor(Uint32Array.of(1, 2));
  expect(() => layerNorm(indices, 2)).toThrow(DTypeError);
});
