import { requestTestDevice, testTiers } from "@halfstep/device/testing";
import { bfloat16, float16 } from "@halfstep/formats";
import { describe, expect, it } from "vitest";
import { type Launches, runOnCpu, runOnGpu } from "../../test/harness.js";
import { countExponents } from "./exponent-histogram.js";

const dtypes = ["float32", "float16", "bfloat16"] as const;
type Floating = (typeof dtypes)[number];

/** Numbers of every exponent that a storage format has, with zeros, infinities and NaN among them. */
function spread(length: number, dtype: Floating): Float32Array {
  const octaves = dtype === "float16" ? 30 : 250;
  return new Float32Array(length).map((_, i) => {
    const special = [0, -0, Number.POSITIVE_INFINITY, Number.NaN][i % 97];
    if (special !== undefined) return special;
    const magnitude = 2 ** (((i * 7919) % octaves) - (dtype === "float16" ? 14 : 125));
    return (i % 2 ? -1 : 1) * magnitude * (1 + (i % 5) / 8);
  });
}

/** Counts by ⌊log2⌋, without looking at bits. */
function countsOf(values: Float32Array, dtype: Floating): number[] {
  const counts = new Array<number>(256).fill(0);
  for (const value of values) {
    const stored =
      dtype === "float32" ? value : (dtype === "float16" ? float16 : bfloat16).round(value);
    const field = !Number.isFinite(stored)
      ? 255
      : stored === 0
        ? 0
        : Math.max(127 + Math.floor(Math.log2(Math.abs(stored))), 0);
    counts[field] = (counts[field] ?? 0) + 1;
  }
  return counts;
}

const cases = dtypes.flatMap((dtype) =>
  (dtype === "float32" ? [0, 1, 3, 6, 9_001, 2_200_001] : [5, 70_003]).map(
    (length) => [dtype, length] as const,
  ),
);

const operandsOf = (dtype: Floating, length: number) =>
  ({
    x: { values: spread(length, dtype), dtype },
    // Counts of earlier gradients of the step.
    exponents: { values: new Uint32Array(256).fill(3), dtype: "uint32" },
  }) as const;

const count: Launches<ReturnType<typeof operandsOf>> = (target, operands) => {
  const exponents = operands.exponents.buffer;
  if (operands.x.length > 0) target.launch(countExponents({ x: operands.x, exponents }));
};

const expected = (dtype: Floating, length: number): number[] =>
  countsOf(spread(length, dtype), dtype).map((found) => found + 3);

describe("an exponent histogram", () => {
  it.each(cases)("by the reference: %s, %i elements", (dtype, length) => {
    const { exponents } = runOnCpu(operandsOf(dtype, length), count);
    expect([...exponents]).toEqual(expected(dtype, length));
  });
});

describe.each(await testTiers())("an exponent histogram on the GPU, %s tier", (tier) => {
  it.each(cases)("%s, %i elements", async (dtype, length) => {
    const device = await requestTestDevice({ tier });
    const { exponents } = await runOnGpu(device, operandsOf(dtype, length), count);
    expect([...exponents]).toEqual(expected(dtype, length));
  });
});
