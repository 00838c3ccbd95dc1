import { DTypeError } from "@halfstep/autocast";
import type { DType } from "@halfstep/device";
import { requestTestDevice } from "@halfstep/device/testing";
import fc from "fast-check";
import { expect, test } from "vitest";
import {
  argmax,
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
  topK,
  where,
} from "../src/index.js";

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

const saturated = (x: number, dtype: Integer): number => {
  const [low, high] = dtype === "int32" ? [-(2 ** 31), 2 ** 31 - 1] : [0, 2 ** 32 - 1];
  return Number.isNaN(x) ? 0 : Math.trunc(Math.min(Math.max(x, low), high)) + 0;
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
  const results: Record<string, readonly [Tensor, readonly number[]]> = {
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
    () => i.add(i),
    () => i.mul(u),
    () => i.sum(),
    () => i.exp(),
    () => i.amax(),
    () => i.cumsum(0),
    () => i.softmax(),
    () => argmax(i),
    () => topK(u, 1),
    () => i.max(0),
    () => i.matmul(i),
    () => f.matmul(i),
    () => i.eq(f),
    () => f.lt(u),
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
