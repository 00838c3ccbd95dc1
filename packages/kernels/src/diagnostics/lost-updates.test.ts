import { requestTestDevice, testTiers } from "@halfstep/device/testing";
import { bfloat16, float16, lostUpdates } from "@halfstep/formats";
import { describe, expect, it } from "vitest";
import { type Launches, runOnCpu, runOnGpu } from "../../test/harness.js";
import {
  countLostUpdates,
  errorUnit,
  lostUpdateCounts,
  lostUpdateWords,
  segmentTable,
} from "../optimizers.js";

/** Segments of awkward lengths, from one element to several chunks, with gaps between them. */
const sizes = [2500, 1, 3, 1024, 70_001];
const offsets = sizes.map((_, i) =>
  sizes.slice(0, i).reduce((end, size) => Math.ceil((end + size) / 64) * 64, 0),
);
const length = (offsets.at(-1) as number) + (sizes.at(-1) as number);
const { chunks } = segmentTable(
  sizes.map((size, i) => ({ offset: offsets[i] as number, shape: [size] })),
);

/** Whole numbers below `range` without pattern. */
const noise = (i: number, range: number): number => (Math.imul(i + 1, 0x9e3779b1) >>> 8) % range;

/** Weights and updates on grids so coarse that float32 holds their sums, with numbers that no count may include. */
const before = new Float32Array(length);
const after = new Float32Array(length);
for (let i = 0; i < length; i++) {
  const weight = (noise(i, 2 ** 17) - 2 ** 16) * 2 ** -14;
  // From one unit of 2^-20, lost in any weight but the smallest, to many.
  const update = (noise(i * 7, 2 ** 15) - 2 ** 14) * 2 ** -20 * (i % 3 === 0 ? 2 ** -1 : 1);
  before[i] = weight;
  after[i] = i % 11 === 0 ? weight : weight + update;
}
before.set([Number.NaN, 1, Infinity, 65504, 0, -0, 1, 2 ** -24, 3e38], 64);
after.set([1, Number.NaN, 1, 65536, 2 ** -26, -(2 ** -26), -Infinity, 2 ** -24 * 1.25, -3e38], 64);

const operands = {
  before: { values: before },
  after: { values: after },
  chunks: { values: chunks, dtype: "uint32" },
  counts: {
    values: sizes.flatMap((_, i) =>
      lostUpdateCounts.flatMap(() => (i === 4 ? [2 ** 32 - 5, 7] : [0, 0])),
    ),
    dtype: "uint32",
  },
} as const;

const launches =
  (format: "float16" | "bfloat16"): Launches<typeof operands> =>
  (target, bindings) =>
    target.launch(countLostUpdates(bindings, { format }));

/** The shares from the counts of a segment, in the form of `@halfstep/formats`. */
function sharesOf(words: ArrayLike<number>, segment: number): number[] {
  const start = segment === 4 ? 7 * 2 ** 32 + 2 ** 32 - 5 : 0;
  const [updates, lost, partial, overflowed, errors] = lostUpdateCounts.map((_, i) => {
    const at = segment * lostUpdateWords + 2 * i;
    return (words[at] as number) + (words[at + 1] as number) * 2 ** 32 - start;
  }) as [number, number, number, number, number];
  return [updates, lost, partial, (errors * errorUnit) / Math.max(1, updates - overflowed)];
}

const formats = { float16, bfloat16 } as const;

describe.each(["float16", "bfloat16"] as const)("updates lost in %s", (dtype) => {
  const expected = sizes.map((size, i) => {
    const [from, to] = [offsets[i] as number, (offsets[i] as number) + size];
    const weights = before.subarray(from, to);
    const updates = Float32Array.from(weights, (w, j) => (after[from + j] as number) - w);
    const {
      updates: count,
      lost,
      partial,
      meanRelativeError,
    } = lostUpdates(weights, updates, formats[dtype]);
    return [count, lost * count, partial * count, meanRelativeError];
  });
  it("are counted by segment as by formats, on the CPU and every tier", async () => {
    const results: [string, ReturnType<typeof runOnCpu<typeof operands>>][] = [
      ["CPU", runOnCpu(operands, launches(dtype))],
    ];
    for (const tier of await testTiers()) {
      const device = await requestTestDevice({ tier });
      results.push([tier, await runOnGpu(device, operands, launches(dtype))]);
    }
    const wrong: string[] = [];
    for (const [name, { counts }] of results)
      for (const [segment, want] of expected.entries()) {
        const got = sharesOf(counts, segment);
        const isSame = got.every(
          (value, i) =>
            Math.abs(value - (want[i] as number)) < (i === 3 ? 1e-5 : 1e-6 * (1 + value)),
        );
        if (!isSame) wrong.push(`${name} segment ${segment}: ${got} instead of ${want}`);
      }
    expect(wrong).toEqual([]);
    const [, lost = 0] = expected[4] as number[];
    expect(lost).toBeGreaterThan(1000);
  });
});
