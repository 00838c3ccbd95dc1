import type { HalfDType } from "@halfstep/device";
import { requestTestDevice, testTiers } from "@halfstep/device/testing";
import { describe, expect, it } from "vitest";
import {
  deviceMismatches,
  type Launches,
  mismatches,
  runOnCpu,
  testValues,
  unitRoundoff,
  withoutSubgroups,
} from "../../test/harness.js";
import { dropout } from "../random.js";
import { attention } from "./forward.js";
import { type AttentionAttributes, type AttentionMaskKind, attentionMask } from "./shape.js";

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
    logSumExp: { values: entries * queries },
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
    attention(target, bound, attributesOf(test));
  };

const toleranceOf = ({ storage = "float32" }: Case) => ({
  relative: 2 ** -18 + (storage === "float32" ? 0 : unitRoundoff[storage] * 1.01),
  absolute: 2 ** -19,
});

/** What the definition says, in float64. */
function definition(test: Case) {
  const { lead, queries, keys, size, width = size, isCausal, mask, p } = test;
  const { query, key, value, mask: given } = operandsOf(test);
  const entries = product(lead);
  const layout = mask && attentionMask(mask[0], mask[1], lead);
  const factors = droppedOnes(test);
  const out: number[] = [];
  const logSumExp: number[] = [];
  for (let e = 0; e < entries; e++)
    for (let i = 0; i < queries; i++) {
      const scores = Array.from({ length: keys }, (_, j) => {
        let score = 0;
        for (let d = 0; d < size; d++)
          score +=
            (query.values[(e * queries + i) * size + d] as number) *
            (key.values[(e * keys + j) * size + d] as number);
        score *= 0.5;
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
      logSumExp.push(total === 0 ? 0 : top + Math.log(total));
      for (let d = 0; d < width; d++)
        out.push(
          weights.reduce(
            (sum, weight, j) =>
              sum +
              weight *
                (p === undefined ? 1 : (factors[(e * queries + i) * keys + j] as number)) *
                (value.values[(e * keys + j) * width + d] as number),
            0,
          ) / (total || 1),
        );
    }
  return { out, logSumExp };
}

/** What dropout makes of ones in the place of the probabilities. */
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

/** On a GPU each of these is a program or two: together they have every path. */
const gpuCases: readonly Case[] = [
  { lead: [2, 3], queries: 67, keys: 83, size: 64, isCausal: true, storage: "float16" },
  { lead: [2, 2], queries: 21, keys: 39, size: 3, mask: ["flags", [2, 1, 21, 39]], p: 0.5 },
  { lead: [2, 2], queries: 40, keys: 36, size: 16, mask: ["lengths", [2, 1]], isCausal: true },
  { lead: [3], queries: 18, keys: 70, size: 8, mask: ["added", [18, 70]], hasSubgroups: false },
];

const tiers = await testTiers();

describe("attention", () => {
  it("on the CPU equals a float64 computation", () => {
    const found = cases.flatMap((test) => {
      const got = runOnCpu(operandsOf(test), launchesOf(test));
      const want = definition(test);
      return [
        ...mismatches(got.out, want.out, toleranceOf(test)),
        ...mismatches(got.logSumExp, want.logSumExp, { relative: 2 ** -20, absolute: 2 ** -20 }),
      ].map((text) => `${JSON.stringify(test)}: ${text}`);
    });
    expect(found).toEqual([]);
  });

  it.each(tiers)("on the GPU, %s tier, equals the reference", async (tier) => {
    const device = await requestTestDevice({ tier });
    const found: string[] = [];
    for (const test of gpuCases) {
      const tolerance = toleranceOf(test);
      const start = performance.now();
      const lines = await deviceMismatches(device, operandsOf(test), launchesOf(test), {
        out: tolerance,
        logSumExp: { relative: 2 ** -18, absolute: 2 ** -18 },
      });
      console.log(tier, JSON.stringify(test), performance.now() - start);
      found.push(...lines.map((text) => `${JSON.stringify(test)}: ${text}`));
    }
    expect(found).toEqual([]);
  });
});
