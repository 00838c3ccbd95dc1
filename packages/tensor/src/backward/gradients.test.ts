import { expect, test } from "vitest";
import {
  cpuRuntime,
  grad,
  narrow,
  type Plan,
  type Runtime,
  select,
  slice,
  split,
  type Tensor,
  type Variable,
} from "../index.js";

const open = (...shape: number[]): { runtime: Runtime; x: Variable } => {
  const runtime = cpuRuntime();
  const length = shape.reduce((a, b) => a * b, 1);
  const values = Float32Array.from({ length }, (_, i) => i + 1);
  return { runtime, x: runtime.variable(values, shape, { requiresGrad: true }) };
};

const namesOf = ({ launches }: Plan): string[] =>
  launches.filter(({ isBackward }) => isBackward).map(({ launch }) => launch.kernel.name);

/** A sum that weighs each piece of a tensor by its number, counted from one. */
const weighed = (pieces: readonly Tensor[]): Tensor =>
  pieces
    .map((piece, i) =>
      piece
        .square()
        .sum()
        .mul(i + 1),
    )
    .reduce((a, b) => a.add(b));

test.each<[string, (x: Tensor) => readonly Tensor[]]>([
  ["split", (x) => split(x, [1, 3, 2], 1)],
  ["narrow, in any order", (x) => [narrow(x, 1, 0, 1), narrow(x, 1, 1, 3), narrow(x, 1, 4, 2)]],
])("all of a tensor by %s gives one concatenation", async (_, cut) => {
  const { runtime, x } = open(2, 6);
  const step = (): void => weighed(cut(x)).backward();
  const names = namesOf(runtime.plan(step));
  expect(names.filter((name) => name === "concatenate" || name === "stridedCopy")).toEqual([
    "concatenate",
  ]);
  expect(names).not.toContain("add");
  await runtime.step(step);
  const weights = [1, 2, 2, 2, 3, 3];
  const expected = Array.from({ length: 12 }, (_, i) => 2 * (i + 1) * (weights[i % 6] as number));
  expect([...(await (x.grad as Variable).toArray())]).toEqual(expected);
});

test("query, key and value, selected from one projection", async () => {
  const { runtime, x } = open(3, 2, 4);
  const step = (): void => {
    const projection = x.mul(1);
    weighed([2, 0, 1].map((part) => select(projection, 0, part))).backward();
  };
  expect(namesOf(runtime.plan(step)).filter((name) => name.startsWith("concatenate"))).toHaveLength(
    1,
  );
  await runtime.step(step);
  const expected = Array.from(
    { length: 24 },
    (_, i) => 2 * (i + 1) * ([2, 3, 1][Math.floor(i / 8)] as number),
  );
  expect([...(await (x.grad as Variable).toArray())]).toEqual(expected);
});

test.each<[string, (x: Tensor) => readonly Tensor[], readonly number[]]>([
  [
    "a gap",
    (x) => [slice(x, 0, { start: 0, end: 2 }), slice(x, 0, { start: 3, end: 4 })],
    [1, 1, 0, 2],
  ],
  [
    "an overlap",
    (x) => [slice(x, 0, { start: 0, end: 3 }), slice(x, 0, { start: 2, end: 4 })],
    [1, 1, 3, 2],
  ],
  [
    "another use",
    (x) => [slice(x, 0, { start: 0, end: 2 }), slice(x, 0, { start: 2, end: 4 }), x],
    [4, 4, 5, 5],
  ],
  [
    "every second place",
    (x) => [slice(x, 0, { start: 0, end: 4, step: 2 }), slice(x, 0, { start: 1, end: 4, step: 2 })],
    [1, 2, 1, 2],
  ],
])("slices with %s add up", async (_, cut, weights) => {
  const { runtime, x } = open(4);
  await runtime.step(() => weighed(cut(x)).backward());
  const expected = weights.map((weight, i) => 2 * (i + 1) * weight);
  expect([...(await (x.grad as Variable).toArray())]).toEqual(expected);
});

test("it can be differentiated again, and asked for by grad()", async () => {
  const { runtime, x } = open(4);
  const second = await runtime.step(() => {
    const [a, b] = split(x, 2) as [Tensor, Tensor];
    const [g] = grad(a.mul(b).square().sum(), [x], { createGraph: true }) as [Tensor];
    return grad(g.sum(), [x])[0] as Tensor;
  });
  // f = Σ (a b)²; ∂/∂a Σ (2ab² + 2a²b) = 2b² + 4ab, of a = 1, 2 and b = 3, 4.
  expect([...(await second.toArray())]).toEqual([18 + 12, 32 + 32, 2 + 12, 8 + 32]);
});
