import type { HalfDType, Tier } from "@halfstep/device";
import { requestTestDevice, testTiers } from "@halfstep/device/testing";
import { describe, expect, it } from "vitest";
import {
  deviceMismatches,
  type Launches,
  mismatches,
  runOnCpu,
  runOnGpu,
  testValues,
  unitRoundoff,
  withoutSubgroups,
} from "../../test/harness.js";
import { dropout } from "../random.js";
import { attention } from "./forward.js";
import { attentionKeyValueGradient } from "./key-value-gradient.js";
import { attentionQueryGradient } from "./query-gradient.js";
import { type AttentionAttributes, type AttentionMaskKind, attentionMask } from "./shape.js";
import { attentionStatistics } from "./statistics.js";

interface Case {
  readonly lead: readonly number[];
  readonly queries: number;
  readonly keys: number;
  readonly size: number;
  /** Default: size. */
  readonly width?: number;
  readonly isCausal?: boolean;
  readonly mask?: readonly [kind: AttentionMaskKind, shape: readonly number[]];
  readonly p?: number;
  readonly storage?: "float32" | HalfDType;
  /** Default true. */
  readonly hasSubgroups?: boolean;
}

const product = (shape: readonly number[]): number => shape.reduce((a, b) => a * b, 1);

function attributesOf({ lead, queries, keys, size, width = size, ...options }: Case) {
  const { isCausal, mask, p } = options;
  return {
    entries: product(lead),
    queries,
    keys,
    size,
    width,
    scale: 0.5,
    ...(isCausal && { isCausal }),
    ...(mask && { mask: attentionMask(mask[0], mask[1], lead) }),
    ...(p !== undefined && { dropout: { p, source: { seed: 7, block: 3, stream: 1 } } }),
  } satisfies AttentionAttributes;
}

/** Flags that hide every fifth element, and the whole of row 1 of a mask with rows; lengths from 0 on; −∞ among the numbers added. */
function maskValues([kind, shape]: NonNullable<Case["mask"]>, keys: number): Float32Array {
  const length = product(shape);
  const columns = shape.at(-1) as number;
  switch (kind) {
    case "lengths":
      return Float32Array.from({ length }, (_, i) => (i * 3) % (keys + 2));
    case "flags":
      return Float32Array.from({ length }, (_, i) =>
        i % 5 === 2 || Math.floor(i / columns) === 1 ? 0 : i + 1,
      );
    default:
      return testValues(length, 5).map((v, i) => (i % 7 === 3 ? -Infinity : v * 4));
  }
}

function operandsOf(attributes: Case) {
  const { entries, queries, keys, size, width } = attributesOf(attributes);
  const { storage: dtype = "float32", mask } = attributes;
  return {
    query: { values: testValues(entries * queries * size, 1), dtype },
    key: { values: testValues(entries * keys * size, 2), dtype },
    value: { values: testValues(entries * keys * width, 3), dtype },
    out: { values: entries * queries * width, dtype },
    normalizers: { values: entries * queries * 2 },
    outGradient: { values: testValues(entries * queries * width, 4), dtype },
    statistics: { values: entries * queries * 4 },
    queryGradient: { values: entries * queries * size, dtype },
    keyGradient: { values: entries * keys * size, dtype },
    valueGradient: { values: entries * keys * width, dtype },
    mask: mask
      ? { values: maskValues(mask, keys), dtype: mask[0] === "added" ? dtype : ("uint32" as const) }
      : { values: 1 },
  } as const;
}

const launchesOf =
  (test: Case): Launches<ReturnType<typeof operandsOf>> =>
  (given, operands) => {
    const target = test.hasSubgroups === false ? withoutSubgroups(given) : given;
    const bound = test.mask ? operands : { ...operands, mask: undefined };
    const attributes = attributesOf(test);
    attention(target, bound, attributes);
    target.launch(attentionStatistics(bound, attributes));
    attentionQueryGradient(target, bound, attributes);
    attentionKeyValueGradient(target, bound, attributes);
  };

/** Half storage rounds `out`, from which the gradients of the scores are computed; a GPU may round to the other side. */
function tolerancesOf({ storage = "float32" }: Case, margin: number) {
  const rounding = storage === "float32" ? 0 : unitRoundoff[storage];
  const exact = { relative: margin * 2 ** -22, absolute: margin * 2 ** -22 };
  const result = { relative: exact.relative + 2.01 * rounding, absolute: exact.absolute };
  const gradient = { ...result, absolute: margin * (2 ** -21 + 2 * rounding) };
  return {
    out: result,
    normalizers: exact,
    queryGradient: gradient,
    keyGradient: gradient,
    valueGradient: { ...result, absolute: margin * 2 ** -21 },
  };
}

/** Attention by its definition, in float64. */
function definition(test: Case, operands = operandsOf(test)) {
  const { lead, queries, keys, size, width = size, isCausal, mask, p: rate } = test;
  const { query, key, value, outGradient: gradient, mask: given } = operands;
  const entries = product(lead);
  const layout = mask && attentionMask(mask[0], mask[1], lead);
  const factors = droppedOnes(test);
  const out = new Float64Array(entries * queries * width);
  const normalizers = new Float64Array(entries * queries * 2);
  const queryGradient = new Float64Array(entries * queries * size);
  const keyGradient = new Float64Array(entries * keys * size);
  const valueGradient = new Float64Array(entries * keys * width);
  const dot = (a: Float32Array, i: number, b: Float32Array, j: number, n: number): number => {
    let sum = 0;
    for (let c = 0; c < n; c++) sum += (a[i * n + c] as number) * (b[j * n + c] as number);
    return sum;
  };
  const add = (to: Float64Array, i: number, x: Float32Array, j: number, n: number, by: number) => {
    for (let c = 0; c < n; c++)
      to[i * n + c] = (to[i * n + c] as number) + by * (x[j * n + c] as number);
  };
  for (let e = 0; e < entries; e++)
    for (let i = 0; i < queries; i++) {
      const row = e * queries + i;
      const scores = Array.from({ length: keys }, (_, j) => {
        const score = dot(query.values, row, key.values, e * keys + j, size) * 0.5;
        if (isCausal && j > i) return -Infinity;
        if (!layout || typeof given.values === "number") return score;
        const { inner, outerStride, innerStride, queryStride, keyStride } = layout;
        const at = Math.floor(e / inner) * outerStride + (e % inner) * innerStride;
        const element = given.values[at + i * queryStride + j * keyStride] as number;
        if (layout.kind === "added") return score + element;
        return (layout.kind === "flags" ? element !== 0 : j < element) ? score : -Infinity;
      });
      const top = Math.max(...scores, -1e300);
      const weights = scores.map((score) => Math.exp(score - top));
      const total = weights.reduce((a, b) => a + b, 0);
      if (total > 0) normalizers.set([top, Math.log(total)], row * 2);
      const p = weights.map((weight) => weight / (total || 1));
      const factor = (j: number): number =>
        rate === undefined ? 1 : (factors[row * keys + j] as number);
      const changes = p.map(
        (_, j) => dot(gradient.values, row, value.values, e * keys + j, width) * factor(j),
      );
      const average = p.reduce((sum, weight, j) => sum + weight * (changes[j] as number), 0);
      for (const [j, weight] of p.entries()) {
        const other = e * keys + j;
        const change = weight * ((changes[j] as number) - average) * 0.5;
        add(out, row, value.values, other, width, weight * factor(j));
        add(valueGradient, other, gradient.values, row, width, weight * factor(j));
        add(queryGradient, row, key.values, other, size, change);
        add(keyGradient, other, query.values, row, size, change);
      }
    }
  return { out, normalizers, queryGradient, keyGradient, valueGradient };
}

/** The result of dropout of ones instead of probabilities. */
function droppedOnes(test: Case): ArrayLike<number> {
  const { entries, queries, keys, dropout: drop } = attributesOf(test) as AttentionAttributes;
  if (!drop) return [];
  const length = entries * queries * keys;
  const operands = { input: { values: new Float32Array(length).fill(1) }, out: { values: length } };
  return runOnCpu(operands, (target, bound) => target.launch(dropout(bound, drop.source, drop.p)))
    .out;
}

const plain = { lead: [2], queries: 5, keys: 6, size: 8 } as const;

/** Every kind of mask, alone and together; lengths and heads of every shape. */
const cases: readonly Case[] = [
  ...[1, 3, 8, 32, 64, 128].map((size) => ({ ...plain, size })),
  { ...plain, size: 5, width: 9 },
  ...[0, 1, 2, 7, 31, 33, 257].map((length) => ({ ...plain, queries: length, keys: length })),
  { ...plain, queries: 1, keys: 0 },
  { ...plain, queries: 3, keys: 70 },
  ...(["float16", "bfloat16"] as const).map((storage) => ({ ...plain, storage })),
  { ...plain, queries: 37, keys: 37, isCausal: true },
  { ...plain, queries: 21, keys: 9, isCausal: true },
  { ...plain, queries: 9, keys: 21, isCausal: true, p: 0.25 },
  { ...plain, keys: 40, p: 0.5 },
  { ...plain, p: 1 },
  { ...plain, lead: [2, 3], mask: ["added", [5, 6]] },
  { ...plain, lead: [2, 3], mask: ["added", [2, 1, 1, 6]], storage: "bfloat16" },
  { ...plain, lead: [2, 3], mask: ["added", [3, 5, 1]], p: 0.5 },
  { ...plain, lead: [2, 3], mask: ["flags", [5, 6]] },
  { ...plain, lead: [2, 3], mask: ["flags", [2, 1, 5, 6]], p: 0.5 },
  { ...plain, lead: [2, 3], queries: 19, mask: ["lengths", [2, 1]], isCausal: true },
  { ...plain, lead: [4], queries: 19, mask: ["lengths", [4]] },
];

/** On a GPU each of these is four programs, a second or two: together they have every path. */
const gpuCases: Readonly<Record<Tier, readonly Case[]>> = {
  native: [
    { lead: [2, 3], queries: 67, keys: 83, size: 64, isCausal: true, storage: "float16" },
    { lead: [2, 2], queries: 21, keys: 39, size: 3, mask: ["flags", [2, 1, 21, 39]], p: 0.5 },
    { lead: [3], queries: 18, keys: 70, size: 8, mask: ["added", [18, 70]], hasSubgroups: false },
  ],
  packed: [
    {
      lead: [2, 2],
      queries: 40,
      keys: 36,
      size: 16,
      width: 24,
      mask: ["lengths", [2, 1]],
      isCausal: true,
      storage: "float16",
    },
  ],
};

const tiers = await testTiers();

describe("attention", () => {
  it("on the CPU equals a float64 computation", () => {
    const found = cases.flatMap((test) => {
      const got = runOnCpu(operandsOf(test), launchesOf(test));
      const want = definition(test);
      const tolerances = tolerancesOf(test, 2);
      return Object.entries(want).flatMap(([name, values]) =>
        mismatches(
          got[name as keyof typeof want],
          values,
          tolerances[name as keyof typeof want],
        ).map((text) => `${JSON.stringify(test)}: ${name}${text}`),
      );
    });
    expect(found).toEqual([]);
  });

  it.each(tiers)("on the GPU, %s tier, equals the reference", async (tier) => {
    const device = await requestTestDevice({ tier });
    const found: string[] = [];
    for (const test of gpuCases[tier]) {
      const operands = operandsOf(test);
      const all = tolerancesOf(test, 16);
      const { out, normalizers, queryGradient } = all;
      const check = async (what: string, tolerances: Partial<typeof all>): Promise<void> => {
        const lines = await deviceMismatches(device, operands, launchesOf(test), tolerances);
        found.push(...lines.map((text) => `${JSON.stringify(test)}${what}: ${text}`));
      };
      await check("", all);
      // The same programs again, for rows that are NaN as a whole and for scores that are infinite. Sums over queries get NaN from
      // these, in a tile also those of keys that they do not see.
      operands.query.values[1] = Number.NaN;
      operands.query.values[test.size * 5] = Number.POSITIVE_INFINITY;
      await check(" with NaN and an infinity", { out, normalizers, queryGradient });
    }
    expect(found).toEqual([]);
  });

  it.each(["CPU", ...tiers] as const)(
    "gives gradients of rows that a large number hides as a whole, %s",
    async (where) => {
      const test: Case = { lead: [2], queries: 9, keys: 11, size: 8, mask: ["added", [9, 11]] };
      const operands = operandsOf(test);
      const mask = operands.mask.values as Float32Array;
      mask.fill(0);
      // Float32 loses the scores next to such a number: they must be equal to compare with float64.
      for (const [row, hidden] of [-65_504, -1e9, -3e38].entries())
        mask.fill(hidden, row * 11, row * 11 + 11);
      for (const entry of [0, 9]) operands.query.values.fill(0, entry * 8, (entry + 3) * 8);
      const { normalizers: _, ...want } = definition(test, operands);
      const got =
        where === "CPU"
          ? runOnCpu(operands, launchesOf(test))
          : await runOnGpu(await requestTestDevice({ tier: where }), operands, launchesOf(test));
      const tolerances = tolerancesOf(test, 16);
      for (const name of Object.keys(want) as (keyof typeof want)[])
        expect([name, ...mismatches(got[name], want[name], tolerances[name])]).toEqual([name]);
    },
  );

  it("drops what dropout would drop, at its rate", () => {
    const test: Case = { lead: [3], queries: 41, keys: 37, size: 1, width: 128, p: 0.3 };
    const factors = droppedOnes(test);
    const operands = operandsOf(test);
    // Equal scores, and values that are one-hot for each key: the result is the mask.
    operands.query.values.fill(0);
    operands.value.values.fill(0);
    for (let e = 0; e < 3; e++)
      for (let j = 0; j < 37; j++) operands.value.values[(e * 37 + j) * 128 + j] = 37;
    const { out } = runOnCpu(operands, launchesOf(test));
    const got = Float32Array.from({ length: factors.length }, (_, i) => {
      const row = Math.floor(i / 37);
      return out[row * 128 + (i % 37)] as number;
    });
    expect(mismatches(got, factors, { relative: 1e-6, absolute: 0 })).toEqual([]);
    const kept = got.reduce((sum, v) => sum + (v > 0 ? 1 : 0), 0) / got.length;
    // Four standard deviations of a proportion of 4551.
    expect(Math.abs(kept - 0.7)).toBeLessThan(4 * Math.sqrt((0.3 * 0.7) / got.length));
  });

  it("refuses what does not fit", () => {
    const run = (test: Case, change: object) => () => {
      const launches: Launches<ReturnType<typeof operandsOf>> = (target, operands) =>
        attention(target, { ...operands, mask: undefined }, { ...attributesOf(test), ...change });
      runOnCpu(operandsOf(test), launches);
    };
    expect(run(plain, { size: 9 })).toThrow("query has 80 elements");
    expect(run({ ...plain, size: 132 }, {})).toThrow("heads have 1 to 128 elements");
    expect(run(plain, { mask: attentionMask("flags", [5, 6], [2]) })).toThrow("go together");
    const dropout = { p: 0.5, source: { seed: 1, block: 0, stream: 0 } };
    const many = { entries: 0, queries: 2 ** 17, keys: 2 ** 17, dropout };
    expect(run({ ...plain, lead: [0] }, many)).not.toThrow();
    expect(attentionMask("added", [2, 1, 3, 1, 5, 6], [2, 4, 3, 2])).toBeUndefined();
  });
});
