import { DTypeError } from "@halfstep/autocast";
import fc from "fast-check";
import { expect, test } from "vitest";
import {
  type ForwardCase,
  forwardMismatches,
  places,
  scattered,
} from "../../test/forward-check.js";
import type { CaseInput } from "../../test/gradient-check.js";
import { cpuRuntime, type Op, ShapeError, type Tensor, type Variable } from "../index.js";
import * as ops from "./index.js";

type Shape = readonly number[];

const positive = (shape: Shape): CaseInput => {
  const { values } = scattered(shape);
  return { shape, values: values.map(Math.abs) };
};

const unaryFormulas: readonly [
  op: Op<null>,
  formula: (x: number) => number,
  make?: (shape: Shape) => CaseInput,
][] = [
  [ops.exp, Math.exp],
  // WGSL does not define roots and logarithms of negative numbers.
  [ops.sqrt, Math.sqrt, positive],
  [ops.log, Math.log, positive],
  [ops.square, (x) => x * x],
  [ops.reciprocal, (x) => 1 / x],
  [ops.tanh, Math.tanh],
  [ops.sigmoid, (x) => 1 / (1 + Math.exp(-x))],
  [ops.relu, (x) => (x > 0 ? x : 0)],
];

const binaryFormulas: readonly [Op<null>, (a: number, b: number) => number][] = [
  [ops.add, (a, b) => a + b],
  [ops.sub, (a, b) => a - b],
  [ops.mul, (a, b) => a * b],
  [ops.div, (a, b) => a / b],
];

const unaryCases = unaryFormulas.flatMap(([op, formula, make = scattered]): ForwardCase[] =>
  [[], [7], [3, 5, 2]].map((shape) => ({
    name: op.name,
    inputs: [make(shape)],
    apply: (inputs) => op.apply(inputs, null),
    expected: ([x]) => (x as number[]).map(formula),
    shape,
  })),
);

/** The element of `shape` that an element of the broadcast `result` takes. */
function indexIn(shape: Shape, result: Shape, element: number): number {
  let rest = element;
  let index = 0;
  let stride = 1;
  for (let d = result.length - 1; d >= 0; d--) {
    const place = rest % (result[d] as number);
    rest = (rest - place) / (result[d] as number);
    const own = shape[shape.length - result.length + d] ?? 1;
    if (own > 1) index += place * stride;
    stride *= own;
  }
  return index;
}

const broadcasts: readonly [Shape, Shape, Shape][] = [
  [
    [2, 3],
    [2, 3],
    [2, 3],
  ],
  [[5, 3], [3], [5, 3]],
  [[], [2, 2], [2, 2]],
  [
    [2, 1, 3],
    [4, 1],
    [2, 4, 3],
  ],
  [
    [1, 6],
    [2, 1],
    [2, 6],
  ],
];

/** Repeated and other dimensions alternate, up to many dimensions: one op suffices. */
const deepBroadcasts: typeof broadcasts = [
  [
    [2, 1, 3, 1, 2],
    [1, 4, 1, 5, 1],
    [2, 4, 3, 5, 2],
  ],
  [
    [2, 1, 3, 1, 2, 1, 2],
    [1, 2, 1, 2, 1, 3, 1],
    [2, 2, 3, 2, 2, 3, 2],
  ],
];

const binaryCases = binaryFormulas.flatMap(([op, formula], i): ForwardCase[] =>
  [...broadcasts, ...(i === 0 ? deepBroadcasts : [])].map(([a, b, shape]) => ({
    name: `${op.name} of [${a}] and [${b}]`,
    inputs: [scattered(a, 1), scattered(b, 2)],
    apply: (inputs) => op.apply(inputs, null),
    expected: ([x, y]) =>
      Array.from({ length: shape.reduce((p, q) => p * q, 1) }, (_, i) =>
        formula(x?.[indexIn(a, shape, i)] as number, y?.[indexIn(b, shape, i)] as number),
      ),
    shape,
  })),
);

const scalarCases: readonly ForwardCase[] = [2.5, -1, 0].flatMap((c) => [
  {
    name: `scale by ${c}`,
    inputs: [scattered([5])],
    apply: ([x]) => ops.scale(x as Tensor, c),
    expected: ([x]) => (x as number[]).map((value) => value * c),
    shape: [5],
  },
  {
    name: `addScalar of ${c}`,
    inputs: [scattered([5])],
    apply: ([x]) => ops.addScalar(x as Tensor, c),
    expected: ([x]) => (x as number[]).map((value) => value + c),
    shape: [5],
  },
]);

test.each(places)("elementwise ops equal their formulas: %s, %s", async (_, dtype, open) => {
  const cases = [...unaryCases, ...binaryCases, ...scalarCases];
  expect(await forwardMismatches(await open(), dtype, cases)).toEqual([]);
});

/** Shapes of two operands that broadcast, of up to eight dimensions that are repeated in turns, or missing in front. */
const broadcastShapes = fc
  .array(fc.tuple(fc.integer({ min: 1, max: 3 }), fc.constantFrom("both", "a", "b")), {
    maxLength: 8,
  })
  .chain((dimensions) => fc.tuple(fc.constant(dimensions), fc.nat(dimensions.length)))
  .map(([dimensions, missing]) => {
    const sizesOf = (own: string): number[] =>
      dimensions.map(([size, who]) => (who === "both" || who === own ? size : 1));
    const b = sizesOf("b");
    const isOne = b.slice(0, missing).every((size) => size === 1);
    return { a: sizesOf("a"), b: isOne ? b.slice(missing) : b, result: dimensions.map(([n]) => n) };
  });

test("operands of every rank broadcast, forward and backward", async () => {
  const runtime = cpuRuntime();
  await fc.assert(
    fc.asyncProperty(broadcastShapes, async ({ a, b, result }) => {
      const shape = result.map((_, d) => Math.max(a[d] ?? 1, b[b.length - a.length + d] ?? 1));
      const size = (of: Shape): number => of.reduce((p, q) => p * q, 1);
      const x = runtime.variable(scattered(a, 1).values, a, { requiresGrad: true });
      const y = runtime.variable(scattered(b, 2).values, b, { requiresGrad: true });
      const product = await runtime.step(() => {
        const made = x.mul(y);
        made.sum().backward();
        return made;
      });
      const [xs, ys] = [await x.toArray(), await y.toArray()];
      const expected = {
        product: [] as number[],
        x: Array(size(a)).fill(0),
        y: Array(size(b)).fill(0),
      };
      for (let i = 0; i < size(shape); i++) {
        const [j, k] = [indexIn(a, shape, i), indexIn(b, shape, i)];
        const [u, v] = [xs[j] as number, ys[k] as number];
        expected.product.push(Math.fround(u * v));
        expected.x[j] += v;
        expected.y[k] += u;
      }
      expect(product.shape).toEqual(shape);
      expect([...(await product.toArray())]).toEqual(expected.product);
      for (const [variable, sums] of [
        [x, expected.x],
        [y, expected.y],
      ] as const) {
        const gradient = [...((await variable.grad?.toArray()) ?? [])];
        expect(gradient.length).toBe(sums.length);
        for (const [i, sum] of sums.entries()) expect(gradient[i]).toBeCloseTo(sum, 4);
      }
    }),
    { numRuns: 60 },
  );
});

test("shapes and dtypes that do not fit are refused by name", () => {
  const runtime = cpuRuntime();
  const x = runtime.zeros([2, 3]);
  expect(() => x.add(runtime.zeros([2]))).toThrow(ShapeError);
  expect(() => x.add(runtime.zeros([2]))).toThrow(
    "add: shapes [2,3] and [2] do not broadcast: sizes 3 and 2 differ",
  );
  const labels = runtime.tensor(Uint32Array.of(1, 2, 3));
  expect(() => x.matmul(labels)).toThrow(DTypeError);
  expect(() => labels.exp()).toThrow("exp needs a floating tensor, not uint32");
});

test("operands of two dtypes meet in float32, as in torch", () => {
  const runtime = cpuRuntime();
  const dtypeOf = (a: Tensor["dtype"], b: Tensor["dtype"]): string =>
    runtime.zeros([1], { dtype: a }).add(runtime.zeros([1], { dtype: b })).dtype;
  expect(dtypeOf("float16", "float16")).toBe("float16");
  expect(dtypeOf("float16", "float32")).toBe("float32");
  expect(dtypeOf("float16", "bfloat16")).toBe("float32");
});

test("gradients of powers and angles at 0 are torch's", async () => {
  const runtime = cpuRuntime();
  const gradients = async (
    op: (a: Tensor, b: Tensor) => Tensor,
    ...values: readonly (readonly number[])[]
  ): Promise<readonly (readonly number[])[]> => {
    const variables = values.map((each) =>
      runtime.variable(each, [each.length], { requiresGrad: true }),
    ) as unknown as [Variable, Variable];
    await runtime.step(() =>
      op(...variables)
        .sum()
        .backward(),
    );
    return Promise.all(variables.map(async ({ grad }) => [...((await grad?.toArray()) ?? [])]));
  };
  const powers = await gradients(ops.pow, [0, 0, 0, 1e-30], [0, 2, -1, 0.1]);
  expect(powers[0]?.slice(0, 3)).toEqual([0, 0, Number.NEGATIVE_INFINITY]);
  expect(powers[1]?.slice(0, 3)).toEqual([0, 0, Number.NEGATIVE_INFINITY]);
  expect(powers[1]?.[3]).toBeCloseTo(-0.0691, 4);
  const atan2 = (y: Tensor, x: Tensor): Tensor => ops.atan2(y, x);
  const angles = await gradients(atan2, [0, 0, -0], [0, 2, -1]);
  expect(angles).toEqual([
    [0, 0.5, -1],
    [-0, -0, 0],
  ]);
});
