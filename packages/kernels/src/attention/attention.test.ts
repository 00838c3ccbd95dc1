import { requestTestDevice, testTiers } from "@halfstep/device/testing";
import { describe, expect, it } from "vitest";
import {
  attributesOf,
  type Case,
  definition,
  droppedOnes,
  launchesOf,
  operandsOf,
} from "../../test/attention-cases.js";
import {
  deviceMismatches,
  isLane,
  type Launches,
  mismatches,
  runOnCpu,
  runOnGpu,
  unitRoundoff,
} from "../../test/harness.js";
import { attention } from "./forward.js";
import { attentionMask } from "./shape.js";

/**
 * Half storage rounds `out`, from which the gradients of the scores are computed; a GPU may round to the other side. Hardware matrices
 * multiply weights that are rounded, too.
 */
function tolerancesOf({ storage = "float32" }: Case, margin: number, hasMatrices = false) {
  const rounding = storage === "float32" ? 0 : unitRoundoff[storage];
  const ofWeights = hasMatrices && storage === "float16" ? rounding : 0;
  const exact = { relative: margin * 2 ** -22, absolute: margin * 2 ** -22 };
  const result = {
    relative: exact.relative + 2.01 * rounding,
    absolute: exact.absolute + ofWeights,
  };
  const gradient = { ...result, absolute: margin * (2 ** -21 + 2 * rounding) };
  return {
    out: result,
    normalizers: exact,
    queryGradient: gradient,
    keyGradient: gradient,
    valueGradient: { ...result, absolute: margin * 2 ** -21 + 4 * ofWeights },
  };
}

const plain = { lead: [2], queries: 5, keys: 6, size: 8 } as const;

/** Every kind of mask, alone and together; lengths and heads of every shape. */
const cases: readonly Case[] = [
  ...[1, 3, 8, 32, 64, 128, 256].map((size) => ({ ...plain, size })),
  { ...plain, size: 5, width: 9 },
  ...[0, 1, 2, 7, 31, 33, 257].map((length) => ({ ...plain, queries: length, keys: length })),
  { ...plain, queries: 1, keys: 0 },
  { ...plain, queries: 3, keys: 70 },
  ...(["float16", "bfloat16"] as const).map((storage) => ({ ...plain, storage })),
  { ...plain, queries: 37, keys: 37, isCausal: true },
  { ...plain, queries: 21, keys: 9, isCausal: true },
  { ...plain, queries: 9, keys: 21, isCausal: true, p: 0.25 },
  { ...plain, queries: 37, keys: 37, window: 3 },
  { ...plain, queries: 37, keys: 21, window: 5, isCausal: true },
  { ...plain, queries: 9, keys: 37, window: 0 },
  { ...plain, queries: 9, keys: 37, window: 100 },
  { ...plain, lead: [2, 6], group: 3 },
  { ...plain, lead: [2, 6], group: 6, size: 5, width: 9, window: 2 },
  { ...plain, lead: [2, 4], group: 2, mask: ["lengths", [2, 4]], isCausal: true },
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

/**
 * On a GPU each of these is four programs, a second or two: together they have every path. Causal masks and lengths of sequences are
 * scalars. The widest heads take the compiler half as long in float16, and few rows a tile take it less than many. They are for lanes.
 */
const gpuCases: Readonly<Record<"best" | "packed", readonly Case[]>> = {
  best: [
    {
      ...{ lead: [2, 2], queries: 37, keys: 39, size: 3, width: 36, isCausal: true },
      ...{ mask: ["flags", [2, 1, 37, 39]], p: 0.5 },
    },
    {
      ...{ lead: [3], queries: 18, keys: 70, size: 8, width: 5, mask: ["added", [18, 70]] },
      hasSubgroups: false,
    },
    {
      ...{ lead: [2, 6], group: 3, queries: 67, keys: 83, size: 256, width: 132 },
      ...{ window: 11, isCausal: true, mask: ["lengths", [2, 1]], storage: "float16" },
    },
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
    {
      ...{ lead: [2, 4], group: 2, queries: 18, keys: 21, size: 8, window: 4 },
      ...{ hasSubgroups: false, p: 0.5 },
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
    const { hardware } = device.capabilities;
    const hasMatrices = hardware.class !== "software" && hardware.subgroupMatrices.length > 0;
    const found: string[] = [];
    for (const test of gpuCases[tier === "packed" ? tier : "best"]) {
      if (test.size >= 256 && !isLane) continue;
      const operands = operandsOf(test);
      const all = tolerancesOf(test, 16, hasMatrices);
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
      // The programs of a case above.
      const test: Case = {
        ...{ lead: [2], queries: 9, keys: 11, size: 8, width: 5, mask: ["added", [9, 11]] },
        hasSubgroups: false,
      };
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
    expect(run({ ...plain, size: 260 }, {})).toThrow("heads have 1 to 256 elements");
    expect(run(plain, { group: 3 })).toThrow("by groups of 3: pass a divisor");
    expect(run(plain, { window: 1.5 })).toThrow("not 1.5");
    expect(run(plain, { mask: attentionMask("flags", [5, 6], [2]) })).toThrow("go together");
    const dropout = { p: 0.5, source: { seed: 1, block: 0, stream: 0 } };
    const many = { entries: 0, queries: 2 ** 17, keys: 2 ** 17, dropout };
    expect(run({ ...plain, lead: [0] }, many)).not.toThrow();
    expect(attentionMask("added", [2, 1, 3, 1, 5, 6], [2, 4, 3, 2])).toBeUndefined();
  });
});
