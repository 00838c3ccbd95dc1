import { autocast, DTypeError } from "@halfstep/autocast";
import { expect, test } from "vitest";
import {
  type ForwardCase,
  forwardMismatches,
  places,
  scattered,
} from "../../test/forward-check.js";
import { cpuRuntime, Generator, ShapeError, type Tensor } from "../index.js";
import { type AttentionOptions, scaledDotProductAttention } from "./index.js";

const [entries, queries, keys, size, width] = [2, 5, 6, 4, 3];

/** Attention by its definition, where `look` says which keys a query sees. */
function attended(
  [q, k, v]: readonly (readonly number[])[],
  look: (query: number, key: number) => boolean,
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
        look(i, j) ? Math.exp(dot(e * queries + i, e * keys + j) / Math.sqrt(size)) : 0,
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

const attentionCase = (
  name: string,
  options: AttentionOptions,
  look: (query: number, key: number) => boolean = () => true,
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
            look(Math.floor(at / keys), at % keys) ? 1 : 0,
          ),
          [queries, keys],
        ),
      }),
    }),
  expected: (inputs) => attended(inputs, look),
  shape: [entries, queries, width],
});

const cases = [
  attentionCase("all keys", {}),
  attentionCase("causal", { isCausal: true }, (i, j) => j <= i),
  // Query 3 sees nothing, and gets zeros.
  attentionCase("mask", {}, (i, j) => i !== 3 && (i + j) % 3 !== 0),
];

test.each(places)("attention is what its definition says: %s, %s", async (_, dtype, open) => {
  expect(await forwardMismatches(await open(), dtype, cases)).toEqual([]);
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
  const refused: readonly [() => unknown, string][] = [
    [
      () => scaledDotProductAttention(x, runtime.zeros([2, 4]), x),
      "scaledDotProductAttention needs query [..., queries, size], key [..., keys, size] and value [..., keys, width], not [2,3], [2,4] and [2,3]",
    ],
    [
      () => scaledDotProductAttention(x, x, x, { mask: runtime.zeros([3, 2]) }),
      "a mask [3,2] does not broadcast to the scores [2,2]",
    ],
  ];
  for (const [call, message] of refused) {
    expect(call).toThrow(ShapeError);
    expect(call).toThrow(message);
  }
  expect(() =>
    scaledDotProductAttention(x, x, x, { mask: runtime.zeros([2, 2]), isCausal: true }),
  ).toThrow("isCausal is a mask of its own");
  expect(() =>
    scaledDotProductAttention(x, x, runtime.zeros([2, 3], { dtype: "float16" })),
  ).toThrow(DTypeError);
});
