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

/** log Σ exp, less the largest first. */
const logSum = (row: readonly number[]): number => {
  const largest = Math.max(...row);
  return largest + Math.log(row.reduce((sum, value) => sum + Math.exp(value - largest), 0));
};

const shapes = [[4], [3, 10], [2, 3, 5], [2, 300], [3, 1]];

const cases = shapes.flatMap((shape): ForwardCase[] => {
  const columns = shape.at(-1) as number;
  const { values } = scattered(shape);
  // Far beyond what exp() can hold, so that the largest must be taken off first.
  const inputs = [{ shape, values: values.map((value) => value * 200) }];
  return [
    {
      name: `softmax of [${shape}]`,
      inputs,
      apply: ([x]) => ops.softmax([x as Tensor], null),
      expected: ([x]) =>
        rowsOf(x as number[], columns).flatMap((row) => row.map((v) => Math.exp(v - logSum(row)))),
      shape,
    },
    {
      name: `logSoftmax of [${shape}]`,
      inputs,
      apply: ([x]) => ops.logSoftmax([x as Tensor], null),
      expected: ([x]) =>
        rowsOf(x as number[], columns).flatMap((row) => row.map((v) => v - logSum(row))),
      shape,
    },
  ];
});

test.each(places)("softmax and its logarithm over rows: %s, %s", async (_, dtype, open) => {
  expect(await forwardMismatches(await open(), dtype, cases)).toEqual([]);
});

test.each(places)("argmax gives the first of the largest: %s, %s", async (_, dtype, open) => {
  const runtime = await open();
  const x = runtime.tensor([1, 3, 3, -5, -2, -7, 0, 0, 0], [3, 3], { dtype });
  const result = ops.argmax([x], null);
  expect([result.dtype, result.shape]).toEqual(["uint32", [3]]);
  expect([...(await result.toArray())]).toEqual([1, 1, 0]);
});

test("a scalar has no rows", () => {
  const x = cpuRuntime().tensor(1);
  for (const op of [ops.softmax, ops.logSoftmax, ops.argmax]) {
    expect(() => op([x], null)).toThrow(ShapeError);
    expect(() => op([x], null)).toThrow(`${op.name} needs at least one dimension`);
  }
});
