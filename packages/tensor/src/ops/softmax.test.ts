import { autocast } from "@halfstep/autocast";
import { expect, test } from "vitest";
import {
  type ForwardCase,
  forwardMismatches,
  places,
  scattered,
} from "../../test/forward-check.js";
import { cpuRuntime, ShapeError, type Tensor } from "../index.js";
import * as ops from "./index.js";

const rowsOf = (x: readonly number[], columns: number): number[][] =>
  Array.from({ length: x.length / columns }, (_, row) =>
    x.slice(row * columns, (row + 1) * columns),
  );

/** log Σ exp, with the maximum subtracted first. */
const logSum = (row: readonly number[]): number => {
  const largest = Math.max(...row);
  return largest + Math.log(row.reduce((sum, value) => sum + Math.exp(value - largest), 0));
};

const shapes = [[4], [3, 10], [2, 3, 5], [2, 300], [3, 1]];

const cases = shapes.flatMap((shape): ForwardCase[] => {
  const columns = shape.at(-1) as number;
  const { values } = scattered(shape);
  // Far beyond the range of exp(), so that the maximum must be subtracted first.
  const inputs = [{ shape, values: values.map((value) => value * 200) }];
  return [
    {
      name: `softmax of [${shape}]`,
      inputs,
      apply: ([x]) => ops.softmax(x as Tensor),
      expected: ([x]) =>
        rowsOf(x as number[], columns).flatMap((row) => row.map((v) => Math.exp(v - logSum(row)))),
      shape,
    },
    {
      name: `logSoftmax of [${shape}]`,
      inputs,
      apply: ([x]) => ops.logSoftmax(x as Tensor),
      expected: ([x]) =>
        rowsOf(x as number[], columns).flatMap((row) => row.map((v) => v - logSum(row))),
      shape,
    },
  ];
});

/** The first axis of [rows, columns], or the middle one. */
const otherAxes: readonly ForwardCase[] = (
  [
    [[5, 3], 0],
    [[2, 7, 4], -2],
  ] as const
).map(([shape, axis]): ForwardCase => {
  const n = shape.at(axis) as number;
  const inner = axis === 0 ? 3 : 4;
  return {
    name: `softmin over axis ${axis} of [${shape}]`,
    inputs: [scattered(shape)],
    apply: ([x]) => ops.softmin(x as Tensor, axis),
    expected: ([x]) =>
      (x as number[]).map((value, i) => {
        const start = Math.floor(i / (n * inner)) * n * inner + (i % inner);
        const column = Array.from({ length: n }, (_, j) => -(x?.[start + j * inner] as number));
        return Math.exp(-value - logSum(column));
      }),
    shape,
  };
});

test.each(places)("softmin over other axes: %s, %s", async (_, dtype, open) => {
  expect(await forwardMismatches(await open(), dtype, otherAxes)).toEqual([]);
});

test("a dtype that the caller asks for wins over autocast", () => {
  const x = cpuRuntime().zeros([2, 3], { dtype: "float16" });
  for (const op of [ops.softmax, ops.logSoftmax, ops.softmin]) {
    const dtypes = autocast({ dtype: "float16" }, () => [
      op(x).dtype,
      op(x, 0).dtype,
      op(x, -1, { dtype: "bfloat16" }).dtype,
      op(x, 0, { dtype: "float16" }).dtype,
    ]);
    expect(dtypes).toEqual(["float32", "float32", "bfloat16", "float16"]);
  }
  expect(x.softmax(0, { dtype: "float32" }).dtype).toBe("float32");
  expect(() => x.softmax(2)).toThrow("softmax: axis 2 is none of the dimensions of [2,3]");
});

test.each(places)("softmax and its logarithm over rows: %s, %s", async (_, dtype, open) => {
  expect(await forwardMismatches(await open(), dtype, cases)).toEqual([]);
});

test.each(places)("argmax gives the first of the largest: %s, %s", async (_, dtype, open) => {
  const runtime = await open();
  const x = runtime.tensor([1, 3, 3, -5, -2, -7, 0, 0, 0], [3, 3], { dtype });
  const result = ops.argmax(x, -1);
  expect([result.dtype, result.shape]).toEqual(["uint32", [3]]);
  expect([...(await result.toArray())]).toEqual([1, 1, 0]);
});

test("a scalar is a row of one element", async () => {
  const x = cpuRuntime().tensor(1);
  expect([await ops.softmax(x, 0).item(), await ops.logSoftmax(x).item()]).toEqual([1, 0]);
  expect([await ops.argmax(x, -1).item(), ops.argmin(x, 0).shape]).toEqual([0, []]);
  expect(() => ops.softmax(x, 1)).toThrow(ShapeError);
  expect(() => ops.argmax(x, 1)).toThrow(ShapeError);
});
