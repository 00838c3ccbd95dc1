import { autocast, DTypeError } from "@halfstep/autocast";
import { requestTestDevice } from "@halfstep/device/testing";
import { expect, test } from "vitest";
import {
  type ForwardCase,
  forwardMismatches,
  places,
  scattered,
} from "../../test/forward-check.js";
import {
  cpuRuntime,
  Generator,
  gpuRuntime,
  grad,
  type Plan,
  type Runtime,
  ShapeError,
  type Tensor,
  type Variable,
} from "../index.js";
import { type AttentionOptions, scaledDotProductAttention } from "./index.js";

const [entries, queries, keys, size] = [2, 5, 6, 4];

/** Attention by its definition; `look` returns whether a query attends to a key. */
function attended(
  [q, k, v]: readonly (readonly number[])[],
  width: number,
  look: (query: number, key: number, entry: number) => boolean,
): number[] {
  const result: number[] = [];
  const dot = (a: number, b: number): number =>
    Array.from({ length: size }).reduce<number>(
      (sum, _, d) => sum + (q?.[a * size + d] as number) * (k?.[b * size + d] as number),
      0,
    );
  for (let e = 0; e < entries; e++)
    for (let i = 0; i < queries; i++) {
      const weights = Array.from({ length: keys }, (_, j) =>
        look(i, j, e) ? Math.exp(dot(e * queries + i, e * keys + j) / Math.sqrt(size)) : 0,
      );
      const total = weights.reduce((a, b) => a + b, 0);
      for (let d = 0; d < width; d++)
        result.push(
          weights.reduce(
            (sum, weight, j) => sum + weight * (v?.[(e * keys + j) * width + d] as number),
            0,
          ) / (total || 1),
        );
    }
  return result;
}

const lengths = [4, 0] as const;

const attentionCase = (
  width: number,
  name: string,
  options: AttentionOptions,
  look: (query: number, key: number, entry: number) => boolean = () => true,
): ForwardCase => ({
  name,
  inputs: [
    scattered([entries, queries, size], 1),
    scattered([entries, keys, size], 2),
    scattered([entries, keys, width], 3),
  ],
  apply: ([q, k, v], runtime) =>
    scaledDotProductAttention(q as Tensor, k as Tensor, v as Tensor, {
      ...options,
      ...(name === "mask" && {
        mask: runtime.tensor(
          Uint32Array.from({ length: queries * keys }, (_, at) =>
            look(Math.floor(at / keys), at % keys, 0) ? 1 : 0,
          ),
          [queries, keys],
        ),
      }),
      ...(name === "padding" && { keyLengths: runtime.tensor(Uint32Array.from(lengths)) }),
    }),
  expected: (inputs) => attended(inputs, width, look),
  shape: [entries, queries, width],
});

const casesOf = (width: number): readonly ForwardCase[] => [
  attentionCase(width, "all keys", {}),
  attentionCase(width, "causal", { isCausal: true }, (i, j) => j <= i),
  attentionCase(width, "a window", { window: 2 }, (i, j) => Math.abs(i - j) <= 2),
  attentionCase(
    width,
    "the past in a window",
    { window: 1, isCausal: true },
    (i, j) => j <= i && i <= j + 1,
  ),
  // Query 3 has no visible key, and gets zeros.
  attentionCase(width, "mask", {}, (i, j) => i !== 3 && (i + j) % 3 !== 0),
  attentionCase(width, "padding", {}, (_, j, e) => j < (lengths[e] as number)),
];

test.each(places)("attention is what its definition says: %s, %s", async (place, dtype, open) => {
  const isGpu = place === "GPU";
  // With wide values programs have fewer rows a tile, and take a GPU's compiler half as long, a second. Masks are in float32 there, the
  // other cases in float16.
  const cases = casesOf(isGpu ? 36 : 3);
  const isMasked = ({ name }: ForwardCase): boolean => name === "mask" || name === "padding";
  const isOurs = (each: ForwardCase): boolean => isMasked(each) === (dtype === "float32");
  const own = isGpu ? cases.filter(isOurs) : cases;
  expect(await forwardMismatches(await open(), dtype, own)).toEqual([]);
});

test("scores beyond the range of float16 do no harm there", async () => {
  const runtime = cpuRuntime();
  const q = runtime.full([1, 256], 200, { dtype: "float16", requiresGrad: true });
  const k = runtime.full([2, 256], 200, { dtype: "float16" });
  const v = runtime.tensor([1, 3], [2, 1], { dtype: "float16" });
  const y = scaledDotProductAttention(q, k, v);
  expect([y.dtype, await y.item()]).toEqual(["float16", 2]);
});

test("autocast casts it as a whole, a mask too", () => {
  const runtime = cpuRuntime();
  const x = runtime.zeros([2, 3]);
  const mask = runtime.zeros([2, 2]);
  const region = { dtype: "bfloat16" } as const;
  const run = () => scaledDotProductAttention(x, x, x, { mask });
  expect([run().dtype, autocast(region, run).dtype]).toEqual(["float32", "bfloat16"]);
});

/**
 * A training step of attention, of its sum with weights, whose mask needs a gradient (which takes the composed ops) or not.
 */
async function trained(
  runtime: Runtime,
  isComposed: boolean,
  { p = 0, ...options }: Pick<AttentionOptions, "window"> & { readonly p?: number },
) {
  const [q, k, v] = [1, 2, 3].map((seed) => {
    const { values, shape } = scattered([2, 64, 4], seed);
    return runtime.variable(values, shape, { requiresGrad: true });
  }) as [Variable, Variable, Variable];
  const weights = scattered([2, 64, 4], 4);
  const mask = runtime.variable(new Float32Array(64 * 64), [64, 64], { requiresGrad: isComposed });
  const out = await runtime.step(() => {
    const y = scaledDotProductAttention(q.mul(2), k.mul(2), v.mul(2), {
      mask,
      ...options,
      ...(p > 0 && { dropout: { p, generator: new Generator(9) } }),
    });
    y.mul(runtime.tensor(weights.values, weights.shape)).sum().backward();
    return y;
  });
  const results = [out, ...[q, k, v].map(({ grad }) => grad as Tensor)];
  const values = await Promise.all(results.map(async (x) => [...(await x.toArray())]));
  return { values: values.flat(), plan: runtime.lastPlan as Plan };
}

test.each([{}, { p: 0.3 }, { window: 5 }])(
  "fused kernels give what composed ops give: %o",
  async (options) => {
    const fused = await trained(cpuRuntime({ arithmetic: "float64" }), false, options);
    const composed = await trained(cpuRuntime({ arithmetic: "float64" }), true, options);
    const far = fused.values.filter(
      (value, i) => !(Math.abs(value - (composed.values[i] as number)) < 1e-7),
    );
    expect(far).toEqual([]);
    const names = (plan: Plan): readonly string[] =>
      plan.launches.map(({ launch }) => launch.kernel.name);
    expect(names(fused.plan)).toContain("attentionKeyValueGradient");
    expect(names(fused.plan)).not.toContain("matmul");
    expect(names(composed.plan)).toContain("attentionProbabilities");
  },
);

test("no tensor of queries × keys is kept, nor made", async () => {
  const scores = 2 * 64 * 64 * 4;
  const fused = (await trained(cpuRuntime(), false, { p: 0.1 })).plan.statistics;
  const composed = (await trained(cpuRuntime(), true, { p: 0.1 })).plan.statistics;
  // Three operands, the result, its weights, and two normalizers a row.
  const kept = 5 * 2 * 64 * 4 * 4 + 2 * 64 * 2 * 4;
  expect(fused.activationBytes).toBeLessThanOrEqual(kept);
  expect(fused.peakBytes).toBeLessThan(scores);
  expect(composed.activationBytes).toBeGreaterThan(scores);
});

test("heads that are too large for the kernels are composed", async () => {
  const runtime = cpuRuntime();
  const x = runtime.full([3, 260], 0.1);
  const y = await runtime.step(() =>
    scaledDotProductAttention(x, x, x, {
      keyLengths: runtime.tensor(Uint32Array.of(2)).reshape([]),
    }),
  );
  expect(y.shape).toEqual([3, 260]);
  expect(Math.abs(((await y.toArray())[0] as number) - 0.1)).toBeLessThan(1e-6);
  expect(runtime.lastPlan?.launches.map(({ launch }) => launch.kernel.name)).toContain(
    "attentionProbabilities",
  );
});

test.each([false, true])(
  "heads of queries that share heads of keys have what repeated keys give them, composed: %s",
  async (isComposed) => {
    const runtime = cpuRuntime({ arithmetic: "float64" });
    const shapes = [
      [2, 6, 5, 4],
      [2, 2, 7, 4],
      [2, 2, 7, 3],
    ];
    const [q, k, v] = shapes.map((shape, seed) => {
      const { values } = scattered(shape, seed + 1);
      return runtime.variable(values, shape, { requiresGrad: true });
    }) as [Variable, Variable, Variable];
    const mask = runtime.variable(new Float32Array(7), [7], { requiresGrad: isComposed });
    const options = { mask, window: 3 };
    const repeated = (x: Tensor): Tensor =>
      x
        .reshape([2, 2, 1, ...x.shape.slice(-2)])
        .expand([2, 2, 3, ...x.shape.slice(-2)])
        .reshape([2, 6, ...x.shape.slice(-2)]);
    const attended = [
      scaledDotProductAttention(q, k, v, { ...options, enableGqa: true }),
      scaledDotProductAttention(q, repeated(k), repeated(v), options),
    ].map((y) => [y, ...grad(y.square().sum(), [q, k, v])] as Tensor[]);
    const [got, want] = (await Promise.all(
      attended.map(async (all) =>
        (await Promise.all(all.map(async (x) => [...(await x.toArray())]))).flat(),
      ),
    )) as [number[], number[]];
    expect(got).toHaveLength(2 * 6 * 5 * 3 + 2 * 6 * 5 * 4 + 2 * 2 * 7 * 4 + 2 * 2 * 7 * 3);
    expect(got.filter((x, i) => !(Math.abs(x - (want[i] as number)) < 1e-6))).toEqual([]);
  },
);

test("no keys, and no queries", async () => {
  // On the GPU by the programs of fold-head-layouts.test.ts.
  const onGpu = { dropout: { p: 0.25, generator: new Generator(3) } };
  const runs: readonly [Runtime, number, "float32" | "float16", AttentionOptions][] = [
    [cpuRuntime(), 3, "float32", {}],
    [gpuRuntime(await requestTestDevice()), 64, "float16", onGpu],
  ];
  for (const [runtime, size, dtype, options] of runs) {
    const q = runtime.full([2, size], 1, { dtype, requiresGrad: true });
    const nothing = runtime.zeros([0, size], { dtype, requiresGrad: true });
    const y = scaledDotProductAttention(q, nothing, nothing, options);
    const [gradient] = grad(y.sum(), [q]);
    expect([...(await y.toArray()), ...(await (gradient as Tensor).toArray())]).toEqual(
      Array(4 * size).fill(0),
    );
    const empty = scaledDotProductAttention(nothing, q, q, options);
    const [keyGradient] = grad(empty.sum(), [q]);
    expect(empty.shape).toEqual([0, size]);
    expect([...(await (keyGradient as Tensor).toArray())]).toEqual(Array(2 * size).fill(0));
  }
});

test("probabilities are dropped at random, and what is left keeps the mean", async () => {
  const runtime = cpuRuntime();
  const q = runtime.zeros([64, 2]);
  const v = runtime.full([64, 1], 1);
  const dropout = { p: 0.5, generator: new Generator(3) };
  const y = scaledDotProductAttention(q, q, v, { dropout });
  const values = [...(await y.toArray())];
  expect(new Set(values).size).toBeGreaterThan(5);
  expect(values.reduce((a, b) => a + b, 0) / 64).toBeCloseTo(1, 1);
});

test("what does not fit is refused", () => {
  const runtime = cpuRuntime();
  const x = runtime.zeros([2, 3]);
  const refused: [() => unknown, string][] = [
    [
      () => scaledDotProductAttention(x, runtime.zeros([2, 4]), x),
      "scaledDotProductAttention needs query [..., queries, size], key [..., keys, size] and value [..., keys, width], not [2,3], [2,4] and [2,3]",
    ],
    [
      () => scaledDotProductAttention(x, x, x, { mask: runtime.zeros([3, 2]) }),
      "a mask [3,2] does not broadcast to the scores [2,2]",
    ],
    [
      () =>
        scaledDotProductAttention(x, x, x, { keyLengths: runtime.tensor(Uint32Array.of(1, 2)) }),
      "keyLengths [2] do not broadcast to [], the dimensions before [keys, size]",
    ],
  ];
  const heads = runtime.zeros([3, 2, 3]);
  refused.push([
    () => scaledDotProductAttention(heads, heads.narrow(0, 0, 2), heads, { enableGqa: true }),
    "fewer heads of key and value, a divisor of these, not [3,2,3], [2,2,3] and [3,2,3]",
  ]);
  for (const [call, message] of refused) {
    expect(call).toThrow(ShapeError);
    expect(call).toThrow(message);
  }
  expect(() => scaledDotProductAttention(x, x, x, { window: -1 })).toThrow(
    "not -1: pass 0 or more",
  );
  expect(() =>
    scaledDotProductAttention(x, x, x, { mask: runtime.zeros([2, 2]), isCausal: true }),
  ).toThrow("isCausal is a mask of its own");
  expect(() =>
    scaledDotProductAttention(x, x, runtime.zeros([2, 3], { dtype: "float16" })),
  ).toThrow(DTypeError);
});
