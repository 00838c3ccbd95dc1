import { DTypeError } from "@halfstep/autocast";
import type { DType } from "@halfstep/device";
import { requestTestDevice } from "@halfstep/device/testing";
import fc from "fast-check";
import { expect, test } from "vitest";
import {
  all,
  any,
  argmax,
  argmin,
  cat,
  cpuRuntime,
  crossEntropy,
  embedding,
  gpuRuntime,
  gridSampler,
  indexPut,
  maskedFill,
  multilabelMarginLoss,
  nllLoss,
  oneHot,
  pad,
  type Runtime,
  type Tensor,
  where,
} from "../src/index.js";
import * as further from "../src/ops/functional.js";

type Integer = "int32" | "uint32";

/** The largest exact integers of float32, and the ends of int32 and uint32. */
const edges: Readonly<Record<Integer, readonly number[]>> = {
  int32: [0, 1, -1, 2 ** 24 - 1, 2 ** 24 + 1, -(2 ** 24) - 1, 2 ** 31 - 1, -(2 ** 31)],
  uint32: [0, 1, 7, 2 ** 24 - 1, 2 ** 24 + 1, 2 ** 31 - 1, 2 ** 31, 2 ** 32 - 1],
};
const numbers = [
  0,
  0.5,
  -0.5,
  2 ** 24 + 1,
  2 ** 31 - 1,
  2 ** 31,
  -(2 ** 31),
  2 ** 32 - 1,
  1e20,
].concat([-1e20, Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]);

const runtimes: readonly [string, () => Promise<Runtime>][] = [
  ["CPU", async () => cpuRuntime()],
  ["GPU", async () => gpuRuntime(await requestTestDevice())],
  ["GPU, packed", async () => gpuRuntime(await requestTestDevice({ tier: "packed" }))],
];

/** Modulo 2^32, of numbers of any size. */
const wrapped = (x: bigint, dtype: Integer): number =>
  Number(dtype === "int32" ? BigInt.asIntN(32, x) : BigInt.asUintN(32, x));

const saturated = (x: number, dtype: Integer): number => {
  const [low, high] = dtype === "int32" ? [-(2 ** 31), 2 ** 31 - 1] : [0, 2 ** 32 - 1];
  return Number.isNaN(x) ? 0 : Math.trunc(Math.min(Math.max(x, low), high)) + 0;
};

/** The quotient rounded down, and 0 of a division by 0. */
const quotientOf = (u: bigint, v: bigint): bigint => {
  if (v === 0n) return 0n;
  const towardsZero = u / v;
  return towardsZero * v !== u && u < 0n !== v < 0n ? towardsZero - 1n : towardsZero;
};

interface Sample {
  readonly dtype: Integer;
  readonly other: Integer;
  /** Eight each. */
  readonly a: readonly number[];
  readonly b: readonly number[];
  readonly c: number;
}

/** The results of ops on integers and the expected ones, by name, all of eight elements or more. */
function resultsOf(runtime: Runtime, { dtype, other, a, b, c }: Sample) {
  const x = runtime.tensor(a, [2, 4], { dtype });
  const y = runtime.tensor(b, [2, 4], { dtype: other });
  const same = runtime.tensor(
    b.map((value) => saturated(value, dtype)),
    [2, 4],
    { dtype },
  );
  const order = [3, 0, 2, 1];
  const turned = (values: readonly number[]): number[] =>
    [0, 4].flatMap((row) => order.map((at) => values[row + at] as number));
  const index = runtime.tensor(Uint32Array.from(order));
  const zip = (f: (u: number, v: number) => number): number[] =>
    a.map((u, i) => f(u, b[i] as number));
  const common: Integer = dtype === "int32" || other === "int32" ? "int32" : "uint32";
  const exact = (f: (u: bigint, v: bigint) => bigint): number[] =>
    zip((u, v) => wrapped(f(BigInt(u), BigInt(v)), common));
  const own = (f: (u: bigint) => bigint): number[] => a.map((u) => wrapped(f(BigInt(u)), dtype));
  const whole = Number.isFinite(c) ? Math.trunc(c) : 7;
  const divisor = saturated(c, dtype);
  const rows = [a.slice(0, 4), a.slice(4)];
  const folded = (f: (u: bigint, v: bigint) => bigint, start: bigint): number[] =>
    rows.map((row) => wrapped(row.map(BigInt).reduce(f, start), dtype));
  const [least, most] = [Math.min(...a), Math.max(...a)];
  const results: Record<string, readonly [Tensor, readonly number[]]> = {
    add: [x.add(y), exact((u, v) => u + v)],
    sub: [x.sub(y), exact((u, v) => u - v)],
    mul: [x.mul(y), exact((u, v) => u * v)],
    addNumber: [x.add(whole), own((u) => u + BigInt(whole))],
    subNumber: [x.sub(whole), own((u) => u - BigInt(whole))],
    mulNumber: [x.mul(whole), own((u) => u * BigInt(whole))],
    neg: [x.neg(), own((u) => -u)],
    abs: [x.abs(), own((u) => (u < 0n ? -u : u))],
    square: [x.square(), own((u) => u * u)],
    sign: [x.sign(), a.map(Math.sign)],
    maximum: [x.maximum(y), zip((u, v) => saturated(Math.max(u, v), common))],
    minimum: [x.minimum(y), zip((u, v) => saturated(Math.min(u, v), common))],
    clamp: [
      x.clamp({ min: -1, max: whole }),
      a.map((u) => Math.min(Math.max(u, saturated(-1, dtype)), saturated(whole, dtype))),
    ],
    floorDivide: [further.floorDivide(x, y), exact(quotientOf)],
    remainder: [further.remainder(x, y), exact((u, v) => u - v * quotientOf(u, v))],
    remainderOfNumber: [
      further.remainder(x, divisor),
      own((u) => u - BigInt(divisor) * quotientOf(u, BigInt(divisor))),
    ],
    bits: [further.bitwiseXor(further.bitwiseAnd(x, y), -2), exact((u, v) => (u & v) ^ -2n)],
    shifted: [
      further.bitwiseRightShift(further.bitwiseLeftShift(further.bitwiseNot(x), 3), y.ne(0)),
      zip((u, v) =>
        wrapped(BigInt(wrapped(~BigInt(u) << 3n, dtype)) >> (v === 0 ? 0n : 1n), dtype),
      ),
    ],
    masked: [x.mul(x.gt(c)), a.map((u) => (u > c ? u : 0))],
    div: [
      x.div(y.ne(0).mul(3)),
      zip((u, v) => (v !== 0 ? Math.fround(Math.fround(u) / 3) : u === 0 ? Number.NaN : u / 0)),
    ],
    sumOfAll: [
      x.sum(),
      [
        wrapped(
          a.map(BigInt).reduce((u, v) => u + v),
          dtype,
        ),
      ],
    ],
    sums: [x.sum(1), folded((u, v) => u + v, 0n)],
    sumsOfColumns: [
      x.sum(0),
      own((u) => u)
        .slice(0, 4)
        .map((u, i) => wrapped(BigInt(u) + BigInt(a[i + 4] as number), dtype)),
    ],
    prods: [x.prod(1), folded((u, v) => u * v, 1n)],
    amax: [x.amax(1), rows.map((row) => Math.max(...row))],
    amin: [x.amin(), [least]],
    count: [x.gt(c).sum(), [a.filter((u) => u > c).length]],
    anyOfRows: [any(x.gt(c), 1), rows.map((row) => Number(row.some((u) => u > c)))],
    allOfRows: [all(x.gt(c), 1), rows.map((row) => Number(row.every((u) => u > c)))],
    cumsum: [
      x.reshape([8]).cumsum(0),
      a.map((_, i) =>
        wrapped(
          a
            .slice(0, i + 1)
            .map(BigInt)
            .reduce((u, v) => u + v),
          dtype,
        ),
      ),
    ],
    argmax: [argmax(x), [a.indexOf(most)]],
    argmin: [argmin(x), [a.indexOf(least)]],
    max: [x.max(1).values, rows.map((row) => Math.max(...row))],
    topK: [x.reshape([8]).topK(3).values, a.toSorted((u, v) => v - u).slice(0, 3)],
    host: [x.reshape([8]), a],
    eq: [x.eq(y), zip((u, v) => Number(u === v))],
    ne: [x.ne(y), zip((u, v) => Number(u !== v))],
    lt: [x.lt(y), zip((u, v) => Number(u < v))],
    ge: [x.ge(y), zip((u, v) => Number(u >= v))],
    gtNumber: [x.gt(c), a.map((u) => Number(u > c))],
    leNumber: [x.le(c), a.map((u) => Number(u <= c))],
    eqNumber: [x.eq(c), a.map((u) => Number(u === c))],
    neNumber: [x.ne(c), a.map((u) => Number(u !== c))],
    toOther: [x.to(other), a.map((u) => saturated(u, other))],
    toFloat: [x.to("float32"), a.map(Math.fround)],
    // Fused with its neighbours, forwards and backwards.
    counted: [x.lt(y).to("float32").mul(3).add(1).to(other), zip((u, v) => (u < v ? 4 : 1))],
    through: [x.to("float32").to(dtype), a.map((u) => saturated(Math.fround(u), dtype))],
    where: [where(x.lt(y), x, same), zip((u, v) => (u < v ? u : saturated(v, dtype)))],
    filled: [maskedFill(x, y, c), zip((u, v) => (v === 0 ? u : saturated(c, dtype)))],
    indexed: [x.indexSelect(1, index), turned(a)],
    gathered: [
      x.gather(1, runtime.tensor(Uint32Array.from([...order, ...order]), [2, 4])),
      turned(a),
    ],
    joined: [cat([x, same], 0), [...a, ...b.map((v) => saturated(v, dtype))]],
    permuted: [x.permute([1, 0]), [0, 4, 1, 5, 2, 6, 3, 7].map((i) => a[i] as number)],
    flipped: [x.flip([0, 1]), a.toReversed()],
    expanded: [
      x.reshape([2, 1, 4]).expand([2, 2, 4]),
      [0, 0, 1, 1].flatMap((r) => a.slice(r * 4, r * 4 + 4)),
    ],
    padded: [
      pad(x.reshape([8]), [[1, 2]], c),
      [saturated(c, dtype), ...a, saturated(c, dtype), saturated(c, dtype)],
    ],
    full: [runtime.full([2], c, { dtype }), [c, c].map((value) => saturated(value, dtype))],
    numbers: [
      runtime.tensor([c, -1, 1.9], [3], { dtype }),
      [c, -1, 1.9].map((value) => saturated(value, dtype)),
    ],
    any: [x.to("float32").mul(0).to(dtype).eq(0), a.map(() => 1)],
  };
  return results;
}

async function mismatches(runtime: Runtime, samples: readonly Sample[]): Promise<string[]> {
  const all = await runtime.step(() => samples.map((sample) => resultsOf(runtime, sample)));
  const lines: string[] = [];
  for (const [i, results] of all.entries())
    for (const [name, [tensor, expected]] of Object.entries(results)) {
      const got = [...(await tensor.toArray())];
      if (got.join() !== expected.join())
        lines.push(`${name} of ${JSON.stringify(samples[i])}: ${got} instead of ${expected}`);
    }
  return lines;
}

const sample = fc
  .tuple(fc.constantFrom<Integer>("int32", "uint32"), fc.constantFrom<Integer>("int32", "uint32"))
  .chain(([dtype, other]) => {
    const eight = (of: Integer) =>
      fc.array(
        fc.oneof(
          fc.constantFrom(...edges[of]),
          fc.integer(of === "int32" ? {} : { min: 0, max: 2 ** 32 - 1 }),
        ),
        { minLength: 8, maxLength: 8 },
      );
    return fc.record({
      dtype: fc.constant(dtype),
      other: fc.constant(other),
      a: eight(dtype),
      b: eight(other),
      c: fc.constantFrom(...numbers),
    });
  });

test("every op on integers is exact, or saturates: CPU", async () => {
  await fc.assert(
    fc.asyncProperty(sample, async (one) => {
      expect(await mismatches(cpuRuntime(), [one])).toEqual([]);
    }),
    { numRuns: 60 },
  );
});

test.each(runtimes)("every op on integers is the same everywhere: %s", async (_, open) => {
  // The tests of kernels cover every pair of dtypes: compiling pipelines is slow.
  const pairs = [
    ["int32", "uint32"],
    ["uint32", "int32"],
  ] as const;
  const samples = pairs.flatMap(([dtype, other]) =>
    numbers.map((c, i): Sample => {
      const b = edges[other];
      return { dtype, other, a: edges[dtype], b: [...b.slice(i % 8), ...b.slice(0, i % 8)], c };
    }),
  );
  expect(await mismatches(await open(), samples)).toEqual([]);
});

test.each(runtimes)("indices beyond 2^24 name their own places: %s", async (_, open) => {
  const runtime = await open();
  const weight = runtime.tensor([1, 2, 3, 4], [4, 1]);
  const words = runtime.tensor(Uint32Array.of(3, 2 ** 24 + 1, 2 ** 32 - 1, 0));
  const [first, ...others] = [...(await embedding(words, weight, { paddingIndex: 3 }).toArray())];
  expect([first, ...others]).toEqual([4, Number.NaN, Number.NaN, 1]);
  expect([...(await oneHot(runtime.tensor(Uint32Array.of(1, 2 ** 31 + 1)), 2).toArray())]).toEqual([
    0, 1, 0, 0,
  ]);
  // 2^31 rows of two would wrap around to place 0.
  const rows = runtime.tensor(Uint32Array.of(2 ** 31, 1, 0));
  const columns = runtime.tensor(Uint32Array.of(0, 1, 2));
  const put = indexPut(runtime.zeros([2, 2]), [rows, columns], runtime.tensor([7, 8, 9]));
  expect([...(await put.toArray())]).toEqual([0, 0, 0, 8]);
});

test.each(runtimes)("integers are put and added by index exactly: %s", async (_, open) => {
  const runtime = await open();
  const big = 2 ** 31 - 1;
  const base = runtime.tensor(Int32Array.of(1, 2, 3, 4, 5, 6, 7, 8), [2, 4]);
  const rows = runtime.tensor(Uint32Array.of(1, 1));
  const given = Int32Array.of(-7, big, 8, -9, 2 ** 24 + 1, big, 1, 2);
  const values = runtime.tensor(given, [2, 4]);
  const put = indexPut(base, rows, values);
  expect([...(await put.toArray())]).toEqual([1, 2, 3, 4, 2 ** 24 + 1, big, 1, 2]);
  const added = indexPut(base, rows, values, { accumulate: true });
  expect([...(await added.toArray())]).toEqual([1, 2, 3, 4, 2 ** 24 - 1, 4, 16, 1]);
  const counts = runtime.tensor(Uint32Array.of(2 ** 32 - 1, 0, 5));
  const places = runtime.tensor(Int32Array.of(-3, 2, 0));
  const ones = runtime.tensor(Uint32Array.of(1, 2 ** 32 - 1, 3));
  const sums = indexPut(counts, places, ones, { accumulate: true });
  expect([...(await sums.toArray())]).toEqual([3, 0, 4]);
  expect(() => indexPut(counts, places, runtime.tensor(Int32Array.of(1, 2, 3)))).toThrow(
    "indexPut: operands are uint32 and int32",
  );
});

test("the last pixels of an image of more than 2^24 are found", async () => {
  const runtime = cpuRuntime();
  const width = 2 ** 13 + 1;
  const height = 2 ** 11 + 1;
  const image = new Float32Array(width * height);
  image[image.length - 2] = 5;
  const grid = runtime.tensor([1 - 2 / width - 1 / width, 1 - 1 / height], [1, 1, 1, 2]);
  const read = gridSampler(runtime.tensor(image, [1, height, width, 1]), grid, { mode: "nearest" });
  expect(await read.item()).toBe(5);
});

test.each(runtimes)("labels may be int32, and a negative one is no class: %s", async (_, open) => {
  const runtime = await open();
  const losses = await runtime.step(() => {
    const scores = runtime.tensor([1, 2, 3, 4, 5, 7], [3, 2], { requiresGrad: true });
    const given = runtime.tensor([1, -100, 0], [3], { dtype: "int32" });
    const computed = runtime.tensor([1.5, -100.5, 0]).to("int32");
    const sum = [given, computed]
      .flatMap((labels) => [
        crossEntropy(scores, labels, { ignoreIndex: -100 }),
        nllLoss(scores, labels, { ignoreIndex: -100 }),
      ])
      .reduce((a, b) => a.add(b));
    sum.backward();
    return [
      crossEntropy(scores, computed, { ignoreIndex: -100, reduction: "none" }),
      crossEntropy(scores, given, { reduction: "none" }),
      nllLoss(scores, given, { ignoreIndex: -100 }),
      multilabelMarginLoss(
        scores,
        runtime.tensor([1, -1, 0, -1, -1, 0], [3, 2], { dtype: "int32" }),
      ),
      (scores.grad as Tensor).slice(0, { start: 1, end: 2 }).abs().sum(),
    ];
  });
  const [ignored, none, nll, margin, gradient] = await Promise.all(losses.map((x) => x.toArray()));
  const softplus = (x: number): number => Math.log1p(Math.exp(x));
  const expected = [softplus(-1), 0, softplus(2)];
  for (const [i, value] of expected.entries()) expect(ignored?.[i]).toBeCloseTo(value, 5);
  // Without ignoreIndex an invalid label gives NaN.
  expect(none?.[1]).toBeNaN();
  expect(nll?.[0]).toBeCloseTo((-2 - 5) / 2, 5);
  // Rows end at the first invalid label: max(0, 1 − (2 − 1)) = 0, 1 − (3 − 4) = 2, none, over 2 classes.
  expect(margin?.[0]).toBeCloseTo((0 + 2 / 2 + 0) / 3, 5);
  expect(gradient?.[0]).toBe(0);
});

test("ops that compute with floats refuse integers before anything runs, and say what to do", () => {
  const runtime = cpuRuntime();
  const of = (dtype: DType): Tensor => runtime.tensor([1, 2, 3, 4], [2, 2], { dtype });
  const [i, u, f] = [of("int32"), of("uint32"), of("float32")];
  const refused: readonly (() => unknown)[] = [
    () => i.add(0.5),
    () => u.mul(Number.POSITIVE_INFINITY),
    () => i.mean(),
    () => i.exp(),
    () => i.relu(),
    () => i.softmax(),
    () => i.norm(),
    () => i.matmul(i),
    () => f.matmul(i),
    () => i.eq(f),
    () => f.lt(u),
    () => further.floorDivide(i, 1.5),
    () => i.clamp({ min: 0.2, max: 1 }),
    () => i.clamp({ max: Number.NaN }),
    () => further.bitwiseAnd(f, 1),
  ];
  const kept = refused.filter((call) => {
    try {
      call();
      return true;
    } catch (error) {
      return !(error instanceof DTypeError && error.message.includes("cast"));
    }
  });
  expect(kept.map(String)).toEqual([]);
});

test("integers and masks meet floats in the dtype of the floats, gradients included", async () => {
  const runtime = cpuRuntime();
  const x = runtime.tensor([1.5, -2, 3, 4], [4], { dtype: "float16", requiresGrad: true });
  const mask = x.gt(1);
  const masked = x.mul(mask);
  expect([masked.dtype, mask.sub(x).dtype, mask.div(x).dtype]).toEqual(Array(3).fill("float16"));
  expect(mask.maximum(x.to("float8e4m3fn")).dtype).toBe("float32");
  masked.sum().backward();
  expect([...(await masked.toArray())]).toEqual([1.5, -0, 3, 4]);
  expect([...(await (x.grad as Tensor).toArray())]).toEqual([1, 0, 1, 1]);
  expect([...(await mask.sub(x).toArray())]).toEqual([-0.5, 2, -2, -3]);
});
