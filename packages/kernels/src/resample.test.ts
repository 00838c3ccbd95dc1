import type { DType, HalfDType } from "@halfstep/device";
import { requestTestDevice, testTiers } from "@halfstep/device/testing";
import { describe, expect, it } from "vitest";
import {
  deviceMismatches,
  type Launches,
  mismatches,
  programsOf,
  runOnCpu,
  someGpu,
  testValues,
  unitRoundoff,
  withHardware,
  withoutMemory,
} from "../test/harness.js";
import { type ResampleAttributes, resample, resampleBackward } from "./resample.js";

const modes = [
  "nearest",
  "nearestExact",
  "linear",
  "linearCorners",
  "cubic",
  "cubicCorners",
] as const;

const sizes = [
  { outer: 2, size: 5, newSize: 10, inner: 3 },
  { outer: 1, size: 10, newSize: 4, inner: 8 },
  { outer: 3, size: 7, newSize: 7, inner: 1 },
  { outer: 1, size: 1, newSize: 5, inner: 2 },
  { outer: 2, size: 6, newSize: 1, inner: 4 },
  { outer: 1, size: 3, newSize: 100, inner: 1 },
];
const cases: readonly ResampleAttributes[] = sizes.flatMap((shape) =>
  modes.map((mode) => ({ ...shape, mode })),
);

interface HalfCase extends ResampleAttributes {
  readonly dtype: HalfDType;
}

/** Columns in pairs of quads, one and several, in three quads, and none, stored in 16 bits. */
const halfCases: readonly HalfCase[] = (
  [
    { outer: 2, size: 5, newSize: 10, inner: 8, dtype: "float16" },
    { outer: 3, size: 10, newSize: 4, inner: 24, dtype: "bfloat16" },
    { outer: 1, size: 7, newSize: 13, inner: 264, dtype: "float16" },
    { outer: 2, size: 6, newSize: 9, inner: 12, dtype: "float16" },
    { outer: 0, size: 6, newSize: 9, inner: 16, dtype: "float16" },
  ] as const
).flatMap((shape) => modes.map((mode) => ({ ...shape, mode })));

const operandsOf = (
  { outer, size, newSize, inner }: ResampleAttributes,
  dtype: "float32" | HalfDType = "float32",
) =>
  ({
    input: { values: testValues(outer * size * inner), dtype },
    out: { values: outer * newSize * inner, dtype },
    outGradient: { values: testValues(outer * newSize * inner, 2), dtype },
    inputGradient: { values: outer * size * inner, dtype },
  }) as const;

const launches =
  (attributes: ResampleAttributes): Launches<ReturnType<typeof operandsOf>> =>
  (target, { input, out, outGradient, inputGradient }) => {
    target.launch(resample({ input, out }, attributes));
    target.launch(resampleBackward({ outGradient, inputGradient }, attributes));
  };

/** Where torch's documentation puts place o: half a place off, but for the nearest and for corners kept in place. */
function weights({ mode, size, newSize }: ResampleAttributes, o: number): readonly number[] {
  const row = Array<number>(size).fill(0);
  const corners = newSize === 1 ? 0 : (o * (size - 1)) / (newSize - 1);
  if (mode === "nearest") row[Math.floor((o * size) / newSize)] = 1;
  else if (mode === "nearestExact") row[Math.floor(((o + 0.5) * size) / newSize)] = 1;
  else if (mode.startsWith("cubic")) {
    const x = mode === "cubic" ? ((o + 0.5) * size) / newSize - 0.5 : corners;
    for (let k = Math.floor(x) - 1; k <= Math.floor(x) + 2; k++) {
      const d = Math.abs(x - k);
      const weight =
        d <= 1 ? 1.25 * d ** 3 - 2.25 * d ** 2 + 1 : -0.75 * (d ** 3 - 5 * d ** 2 + 8 * d - 4);
      const at = Math.min(Math.max(k, 0), size - 1);
      row[at] = (row[at] as number) + weight;
    }
  } else {
    const x = mode === "linear" ? Math.max(((o + 0.5) * size) / newSize - 0.5, 0) : corners;
    const low = Math.min(Math.floor(x), size - 1);
    const high = Math.min(low + 1, size - 1);
    row[low] = (row[low] as number) + 1 - (x - low);
    row[high] = (row[high] as number) + (x - low);
  }
  return row;
}

const tiers = await testTiers();
const tolerance = { relative: 1e-5, absolute: 1e-6 };

describe("resample", () => {
  it("is the matrix of its weights, and backward its transpose", () => {
    const found = cases.flatMap((attributes) => {
      const { outer, size, newSize, inner } = attributes;
      const got = runOnCpu(operandsOf(attributes), launches(attributes));
      const out = new Float64Array(got.out.length);
      const back = new Float64Array(got.input.length);
      for (let o = 0; o < outer; o++)
        for (let p = 0; p < newSize; p++)
          for (const [r, weight] of weights(attributes, p).entries())
            for (let c = 0; c < inner; c++) {
              const [from, to] = [(o * size + r) * inner + c, (o * newSize + p) * inner + c];
              out[to] = (out[to] as number) + weight * (got.input[from] as number);
              back[from] = (back[from] as number) + weight * (got.outGradient[to] as number);
            }
      return [
        ...mismatches(got.out, out, tolerance),
        ...mismatches(got.inputGradient, back, tolerance),
      ].map((text) => `${JSON.stringify(attributes)}: ${text}`);
    });
    expect(found).toEqual([]);
  });

  it("gives torch's numbers", () => {
    // torch 2.13: interpolate(tensor([[[1., 2., 4.]]]), size=5, mode=…), linear without and with align_corners.
    const run = (mode: ResampleAttributes["mode"]) =>
      Array.from(
        runOnCpu({ input: { values: [1, 2, 4] }, out: { values: 5 } }, (target, o) =>
          target.launch(resample(o, { mode, outer: 1, size: 3, newSize: 5, inner: 1 })),
        ).out,
        (value) => Math.round(value * 1e4) / 1e4,
      );
    expect(run("nearest")).toEqual([1, 1, 2, 2, 4]);
    expect(run("linear")).toEqual([1, 1.4, 2, 3.2, 4]);
    expect(run("linearCorners")).toEqual([1, 1.5, 2, 3, 4]);
    expect(run("nearestExact")).toEqual([1, 1, 2, 4, 4]);
    expect(run("cubic")).toEqual([0.904, 1.244, 2, 3.296, 4.192]);
    expect(run("cubicCorners")).toEqual([1, 1.3125, 2, 3.0938, 4]);
  });

  it.each(tiers)("equals the reference on the GPU, %s tier", async (tier) => {
    const device = await requestTestDevice({ tier });
    const found: string[] = [];
    for (const attributes of cases) {
      const texts = await deviceMismatches(device, operandsOf(attributes), launches(attributes), {
        out: tolerance,
        inputGradient: tolerance,
      });
      found.push(...texts.map((text) => `${JSON.stringify(attributes)}: ${text}`));
    }
    expect(found).toEqual([]);
  });

  it.each(tiers)("equals the reference by the programs of GPUs, %s tier", async (tier) => {
    const device = await requestTestDevice({ tier });
    const found: string[] = [];
    for (const attributes of halfCases) {
      const { dtype } = attributes;
      const stored = { relative: 2 * unitRoundoff[dtype], absolute: tolerance.absolute };
      const texts = await deviceMismatches(
        device,
        operandsOf(attributes, dtype),
        (target, operands) => launches(attributes)(withHardware(target, someGpu), operands),
        { out: stored, inputGradient: stored },
      );
      found.push(...texts.map((text) => `${JSON.stringify(attributes)}: ${text}`));
    }
    expect(found).toEqual([]);
  });

  it("moves 16 bytes at a time on GPUs where its storage has 16 bits", () => {
    const pairs = (inner: number, from: DType, to: DType, hardware = someGpu): readonly number[] =>
      modes.flatMap((mode) => {
        const codes = programsOf({ tier: "native", subgroupSize: 32, hardware }, (target) => {
          const [input, out] = [withoutMemory(5 * inner, from), withoutMemory(9 * inner, to)];
          const shape = { outer: 1, size: 5, newSize: 9, inner, mode };
          target.launch(resample({ input, out }, shape));
          target.launch(resampleBackward({ outGradient: out, inputGradient: input }, shape));
        });
        return Object.values(codes).map((code) => code.split("array<vec4u>").length - 1);
      });
    const each = (count: number): readonly number[] => Array(2 * modes.length).fill(count);
    expect(pairs(8, "float16", "float16")).toEqual(each(2));
    expect(pairs(24, "bfloat16", "float16")).toEqual(each(2));
    expect(pairs(12, "float16", "float16")).toEqual(each(0));
    expect(pairs(8, "float16", "float32")).toEqual(each(0));
    expect(pairs(8, "float16", "float16", { ...someGpu, class: "software" })).toEqual(each(0));
  });
});
