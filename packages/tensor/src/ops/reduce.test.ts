import { expect, test } from "vitest";
import {
  type ForwardCase,
  forwardMismatches,
  places,
  scattered,
} from "../../test/forward-check.js";
import { cpuRuntime, ShapeError, type Tensor } from "../index.js";
import * as ops from "./index.js";

type Shape = readonly number[];

/** Sums over axes, element by element. */
function summed(values: readonly number[], shape: Shape, axes: readonly number[]): number[] {
  const kept = shape.map((size, d) => (axes.includes(d) ? 1 : size));
  const result = new Array<number>(kept.reduce((a, b) => a * b, 1)).fill(0);
  for (const [element, value] of values.entries()) {
    let rest = element;
    let index = 0;
    let stride = 1;
    for (let d = shape.length - 1; d >= 0; d--) {
      const place = rest % (shape[d] as number);
      rest = (rest - place) / (shape[d] as number);
      if (!axes.includes(d)) index += place * stride;
      stride *= kept[d] as number;
    }
    result[index] = (result[index] as number) + value;
  }
  return result;
}

const reductions: readonly [Shape, readonly number[] | number | undefined][] = [
  [[37], undefined],
  [[], undefined],
  [[5, 7], 0],
  [[5, 7], -1],
  [
    [3, 4, 5],
    [0, 2],
  ],
  [
    [3, 4, 5],
    [1, 2],
  ],
  [
    [2, 1, 3, 2],
    [1, -1],
  ],
  [[2, 600], 1],
];

const cases = reductions.flatMap(([shape, axes]): ForwardCase[] => {
  const all = axes === undefined ? shape.map((_, d) => d) : [axes].flat();
  const chosen = all.map((axis) => (axis < 0 ? axis + shape.length : axis));
  const count = chosen.reduce((product, d) => product * (shape[d] as number), 1);
  return [true, false].flatMap((keepDimensions) => {
    const result = shape.flatMap((size, d) =>
      chosen.includes(d) ? (keepDimensions ? [1] : []) : [size],
    );
    const name = `[${shape}] over ${axes ?? "all"}`;
    const common = { inputs: [scattered(shape)], shape: result };
    return [
      {
        ...common,
        name: `sum of ${name}`,
        apply: ([x]) => ops.sum(x as Tensor, axes, { keepDimensions }),
        expected: ([x]) => summed(x as number[], shape, chosen),
      },
      {
        ...common,
        name: `mean of ${name}`,
        apply: ([x]) => ops.mean(x as Tensor, axes, { keepDimensions }),
        expected: ([x]) => summed(x as number[], shape, chosen).map((value) => value / count),
      },
    ];
  });
});

test.each(places)("sums and means over any axes: %s, %s", async (_, dtype, open) => {
  expect(await forwardMismatches(await open(), dtype, cases)).toEqual([]);
});

test("an axis that is not there is refused", () => {
  const x = cpuRuntime().zeros([2, 3]);
  expect(() => x.sum(2)).toThrow(ShapeError);
  expect(() => x.sum(2)).toThrow("sum: axis 2 is none of the dimensions of [2,3]");
  expect(() => x.mean([0, -3])).toThrow("mean: axis -3 is none of the dimensions of [2,3]");
  expect(() => x.sum([0, -2])).toThrow("sum: axes [0,-2] name dimension 0 more than once");
  expect(() => x.flip([1, 1])).toThrow("flip: axes [1,1] name dimension 1 more than once");
});

test("an empty list of axes is refused: torch takes all of them, NumPy none", async () => {
  const runtime = cpuRuntime();
  const x = runtime.full([2, 3], 1);
  expect(() => x.norm({ axes: [] })).toThrow("sum: an empty list of axes");
  expect(() => x.sum([])).toThrow(
    "sum: an empty list of axes is all of them in torch and none in NumPy: leave axes out to reduce all of them",
  );
  // All axes of a scalar are none, in both.
  expect(await runtime.full([], 1).sum([]).item()).toBe(1);
});
