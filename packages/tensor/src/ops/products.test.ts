import { autocast } from "@halfstep/autocast";
import { expect, test } from "vitest";
import {
  type ForwardCase,
  forwardMismatches,
  places,
  scattered,
} from "../../test/forward-check.js";
import { naiveEinsum } from "../../test/naive-einsum.js";
import { cpuRuntime, ShapeError, type Tensor } from "../index.js";
import * as ops from "./index.js";

type Shape = readonly number[];

const size = (shape: Shape): number => shape.reduce((a, b) => a * b, 1);

function productCase(
  name: string,
  equation: string,
  shapes: readonly Shape[],
  shape: Shape,
  apply: (...factors: Tensor[]) => Tensor,
): ForwardCase {
  return {
    name,
    inputs: shapes.map((own, i) => scattered(own, i + 1)),
    apply: (inputs) => apply(...inputs),
    expected: (inputs) => naiveEinsum(equation, inputs, shapes),
    shape,
  };
}

const options = { alpha: -0.5, beta: 2 };

/** A case of an op that adds a tensor to a product; the tensor is repeated along its first dimension. */
function sumCase(
  name: string,
  apply: typeof ops.addmm,
  equation: string,
  shapes: readonly Shape[],
  shape: Shape,
): ForwardCase {
  const inputShape = shape.length > 1 ? shape.slice(1) : shape;
  return {
    name,
    inputs: [scattered(inputShape, 7), ...shapes.map((own, i) => scattered(own, i + 1))],
    apply: ([input, a, b]) => apply(input as Tensor, a as Tensor, b as Tensor, options),
    expected: ([input, ...factors]) =>
      naiveEinsum(equation, factors, shapes).map(
        (value, i) => -0.5 * value + 2 * (input?.[i % size(inputShape)] as number),
      ),
    shape,
  };
}

const cases: readonly ForwardCase[] = [
  productCase(
    "mm",
    "mk,kn->mn",
    [
      [3, 5],
      [5, 7],
    ],
    [3, 7],
    ops.mm,
  ),
  productCase("mv", "mk,k->m", [[6, 5], [5]], [6], ops.mv),
  productCase(
    "bmm",
    "bmk,bkn->bmn",
    [
      [2, 3, 5],
      [2, 5, 7],
    ],
    [2, 3, 7],
    ops.bmm,
  ),
  productCase(
    "chainMatmul",
    "ab,bc,cd,de->ae",
    [
      [4, 2],
      [2, 7],
      [7, 1],
      [1, 3],
    ],
    [4, 3],
    (...all) => ops.chainMatmul(...all),
  ),
  sumCase(
    "addmm",
    ops.addmm,
    "mk,kn->mn",
    [
      [3, 5],
      [5, 7],
    ],
    [3, 7],
  ),
  sumCase("addmv", ops.addmv, "mk,k->m", [[6, 5], [5]], [6]),
  sumCase("addr", ops.addr, "m,n->mn", [[3], [5]], [3, 5]),
  sumCase(
    "addbmm",
    ops.addbmm,
    "bmk,bkn->mn",
    [
      [2, 3, 5],
      [2, 5, 7],
    ],
    [3, 7],
  ),
  sumCase(
    "baddbmm",
    ops.baddbmm,
    "bmk,bkn->bmn",
    [
      [2, 3, 5],
      [2, 5, 7],
    ],
    [2, 3, 7],
  ),
];

test.each(places)("products equal their sums: %s, %s", async (_, dtype, open) => {
  expect(await forwardMismatches(await open(), dtype, cases)).toEqual([]);
});

test("a sum of a product is rounded once", async () => {
  const runtime = cpuRuntime();
  const half = (values: number[], shape: Shape) =>
    runtime.tensor(values, shape, { dtype: "float16" });
  const a = half([2048, 1], [1, 2]);
  const b = half([1, 1], [2, 1]);
  // The product is 2049, which float16 would round to 2048.
  expect(await ops.addmm(half([-2048], [1, 1]), a, b).item()).toBe(1);
  const large = half([60000, 60000], [1, 2]);
  expect(await ops.addmm(half([0], [1, 1]), large, b, { alpha: 2 ** -4 }).item()).toBe(7500);
});

test("with beta 0 the elements that are added to do not count", async () => {
  const runtime = cpuRuntime();
  const one = runtime.tensor([1], [1, 1]);
  const nothing = runtime.tensor([Number.NaN], [1, 1]);
  expect(await ops.addmm(nothing, one, one, { beta: 0 }).item()).toBe(1);
});

test("autocast casts all that they take", () => {
  const runtime = cpuRuntime();
  const [v, m, t] = [runtime.zeros([2]), runtime.zeros([2, 2]), runtime.zeros([2, 2, 2])];
  const results = autocast({ dtype: "float16" }, () => [
    ops.mm(m, m),
    ops.mv(m, v),
    ops.bmm(t, t),
    ops.addmm(v, m, m),
    ops.addmv(v, m, v),
    ops.addr(m, v, v),
    ops.addbmm(m, t, t),
    ops.baddbmm(t, t, t),
    ops.chainMatmul(m, m, m),
    ops.linear(m, m, v),
  ]);
  expect(results.map(({ dtype }) => dtype)).toEqual(results.map(() => "float16"));
});

test("ranks and batches that do not fit are refused", () => {
  const runtime = cpuRuntime();
  const [v, m, t] = [runtime.zeros([2]), runtime.zeros([2, 2]), runtime.zeros([2, 2, 2])];
  const refused: readonly [() => unknown, string][] = [
    [
      () => ops.mm(t, m),
      "mm needs factors of 2 and 2 dimensions, not [2,2,2] and [2,2]; matmul() takes any",
    ],
    [() => ops.mv(m, m), "mv needs factors of 2 and 1 dimensions"],
    [
      () => ops.bmm(t, runtime.zeros([3, 2, 2])),
      "have different batches; matmul() broadcasts them",
    ],
    [() => ops.addbmm(m, t, runtime.zeros([3, 2, 2])), "need the same batch"],
    [() => ops.addr(m, v, m), "addr needs factors of 1 and 1 dimensions"],
    [() => ops.chainMatmul(m, v), "chainMatmul needs factors of 2 and 2 dimensions"],
    [() => ops.chainMatmul(), "chainMatmul needs at least one matrix"],
  ];
  for (const [call, message] of refused) {
    expect(call).toThrow(ShapeError);
    expect(call).toThrow(message);
  }
});
