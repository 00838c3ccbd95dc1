import { DTypeError } from "@halfstep/autocast";
import { expect, test } from "vitest";
import {
  type ForwardCase,
  forwardMismatches,
  places,
  scattered,
} from "../../test/forward-check.js";
import { naiveEinsum } from "../../test/naive-einsum.js";
import { cpuRuntime, grad, ShapeError, type Tensor, type Variable } from "../index.js";
import * as ops from "./index.js";

interface Sizes {
  readonly m: number;
  readonly n: number;
  readonly k: number;
}

/** Entries of the left and the right factor; the result has the larger number. */
const batches: readonly [a: readonly number[], b: readonly number[]][] = [
  [[2], [2]],
  [[2, 2], []],
  [[], [3]],
];

function productCase(
  { m, n, k }: Sizes,
  [batchA, batchB]: (typeof batches)[number],
  transA: boolean,
  transB: boolean,
): ForwardCase {
  const batch = batchA.length > 0 ? batchA : batchB;
  const entries = batch.reduce((a, b) => a * b, 1);
  const at = (
    x: readonly number[],
    own: readonly number[],
    entry: number,
    [row, column]: readonly [number, number],
    [rows, columns]: readonly [number, number],
    isTransposed: boolean,
  ): number => {
    const start = own.length > 0 ? entry * rows * columns : 0;
    return x[start + (isTransposed ? column * rows + row : row * columns + column)] as number;
  };
  return {
    name: `[${batchA}] × [${batchB}] of ${m}, ${n}, ${k}, ${transA ? "T" : "N"}${transB ? "T" : "N"}`,
    inputs: [
      scattered([...batchA, ...(transA ? [k, m] : [m, k])], 1),
      scattered([...batchB, ...(transB ? [n, k] : [k, n])], 2),
    ],
    apply: (inputs) => ops.matmul.apply(inputs, { transA, transB }),
    expected: ([a, b]) =>
      Array.from({ length: entries * m * n }, (_, i) => {
        const [column, row, entry] = [i % n, Math.floor(i / n) % m, Math.floor(i / (n * m))];
        let sum = 0;
        for (let j = 0; j < k; j++)
          sum +=
            at(a as number[], batchA, entry, [row, j], [m, k], transA) *
            at(b as number[], batchB, entry, [j, column], [k, n], transB);
        return sum;
      }),
    shape: [...batch, m, n],
  };
}

const alone: (typeof batches)[number] = [[], []];
const small: Sizes = { m: 3, n: 5, k: 7 };

const cases: readonly ForwardCase[] = [
  productCase({ m: 1, n: 1, k: 1 }, alone, false, false),
  productCase({ m: 33, n: 17, k: 130 }, alone, false, true),
  productCase(small, alone, false, false),
  productCase(small, alone, false, true),
  productCase(small, alone, true, false),
  productCase(small, alone, true, true),
  ...batches.flatMap((batch) => [
    productCase(small, batch, false, true),
    productCase(small, batch, true, false),
  ]),
  ...(
    [
      ["k,k->", [7], [7], []],
      ["k,kn->n", [7], [7, 5], [5]],
      ["mk,k->m", [5, 7], [7], [5]],
      ["bmk,k->bm", [2, 5, 7], [7], [2, 5]],
      ["k,bkn->bn", [7], [2, 7, 5], [2, 5]],
      ["abmk,bkn->abmn", [2, 1, 3, 5], [4, 5, 2], [2, 4, 3, 2]],
      ["abmk,bkn->abmn", [1, 2, 3, 5], [2, 5, 2], [1, 2, 3, 2]],
      ["bmk,abkn->abmn", [2, 3, 5], [3, 2, 5, 4], [3, 2, 3, 4]],
    ] as const
  ).map(
    ([equation, a, b, shape]): ForwardCase => ({
      name: `[${a}] × [${b}]`,
      inputs: [scattered(a, 1), scattered(b, 2)],
      apply: (inputs) => ops.matmul.apply(inputs, {}),
      expected: (inputs) => naiveEinsum(equation, inputs, [a, b]),
      shape,
    }),
  ),
  {
    name: "linear",
    inputs: [scattered([2, 2, 3], 1), scattered([4, 3], 2), scattered([4], 3)],
    apply: ([x, weight, bias]) => ops.linear(x as Tensor, weight as Tensor, bias),
    expected: ([x, weight, bias]) =>
      Array.from({ length: 16 }, (_, i) => {
        const [row, out] = [Math.floor(i / 4), i % 4];
        return [0, 1, 2].reduce(
          (sum, j) => sum + (x?.[row * 3 + j] as number) * (weight?.[out * 3 + j] as number),
          bias?.[out] as number,
        );
      }),
    shape: [2, 2, 4],
  },
];

test.each(places)("matrix products equal their sums: %s, %s", async (_, dtype, open) => {
  expect(await forwardMismatches(await open(), dtype, cases)).toEqual([]);
});

test.each(places)("factors without rows have gradients: %s, %s", async (_, dtype, open) => {
  const runtime = await open();
  const x = runtime.variable(new Float32Array(0), [0, 3], { dtype, requiresGrad: true });
  const w = runtime.variable(new Float32Array(6), [3, 2], { dtype, requiresGrad: true });
  const gradients = await runtime.step(() => grad(x.matmul(w).sum(), [x, w]) as Tensor[]);
  const [dx, dw] = await Promise.all(gradients.map((gradient) => gradient.toArray()));
  expect([dx?.length, Array.from(dw ?? [])]).toEqual([0, [0, 0, 0, 0, 0, 0]]);
});

test.each(places)("sums over nothing are zeros, with gradients: %s, %s", async (_, dtype, open) => {
  const runtime = await open();
  const sizes: readonly Sizes[] = [
    { m: 3, n: 4, k: 0 },
    { m: 3, n: 0, k: 4 },
  ];
  for (const { m, n, k } of sizes) {
    const zeros = (shape: readonly number[]): Variable =>
      runtime.variable(new Float32Array(shape.reduce((a, b) => a * b, 1)), shape, {
        dtype,
        requiresGrad: true,
      });
    const rows = zeros([2, m, k]);
    const products: readonly [y: () => Tensor, shape: readonly number[], Variable[]][] = [
      ...[false, true].map((transB): (typeof products)[number] => {
        const shared = zeros(transB ? [n, k] : [k, n]);
        return [() => ops.matmul(rows, shared, { transB }), [2, m, n], [rows, shared]];
      }),
      ((w) => [() => ops.tensordot(rows, w, 1), [2, m, n], [rows, w]])(zeros([k, n])),
      ((x, w) => [() => ops.bilinear(rows, x, w), [2, m, 5], [rows, x, w]])(
        zeros([2, m, n]),
        zeros([5, k, n]),
      ),
    ];
    for (const [y, shape, factors] of products) {
      const [value, gradients] = await runtime.step(() => {
        const value = y();
        return [value, grad(value.sum(), factors) as Tensor[]] as const;
      });
      expect(value.shape).toEqual(shape);
      expect(gradients.map((gradient) => gradient.shape)).toEqual(factors.map((x) => x.shape));
      for (const x of [value, ...gradients])
        expect((await x.toArray()).every((element) => element === 0)).toBe(true);
    }
  }
});

test("shapes and dtypes that do not fit are refused", () => {
  const runtime = cpuRuntime();
  const a = runtime.zeros([2, 3]);
  const refused: readonly [() => unknown, string][] = [
    [
      () => a.matmul(runtime.zeros([2, 3])),
      "matmul: lhs [2,3], rhs [2,3]: inner sizes 3 and 2 differ",
    ],
    [
      () => a.matmul(runtime.zeros([4, 3]), { transA: true, transB: true }),
      "matmul: lhs [2,3] transposed, rhs [4,3] transposed: inner sizes 2 and 3 differ",
    ],
    [() => a.matmul(runtime.zeros([])), "both need at least one dimension"],
    [() => a.matmul(runtime.zeros([3]), { transB: true }), "a vector has no transpose"],
    [
      () => runtime.zeros([2, 2, 3]).matmul(runtime.zeros([3, 3, 1])),
      "matmul: shapes [2] and [3] do not broadcast",
    ],
  ];
  for (const [call, message] of refused) {
    expect(call).toThrow(ShapeError);
    expect(call).toThrow(message);
  }
  const half = runtime.zeros([3, 2], { dtype: "float16" });
  expect(() => a.matmul(half)).toThrow(DTypeError);
  expect(() => a.matmul(half)).toThrow(
    "matmul: lhs is float32, rhs is float16; cast one with to()",
  );
});
