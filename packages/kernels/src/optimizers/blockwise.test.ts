import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { blockLength, blockWords, decodeBlock, encodeBlock } from "./blockwise.js";

const signs = ["signed", "unsigned"] as const;

/** Encodes and decodes a block. */
function kept(values: readonly number[], sign: (typeof signs)[number]): number[] {
  const words = new Uint32Array(blockWords);
  const out = new Float64Array(blockLength);
  // Random bits of one half, so that stochastic rounding rounds to nearest.
  encodeBlock(words, 0, sign, values.length, Float64Array.from(values), () => 0x7ffff);
  decodeBlock(words, 0, sign, values.length, out);
  return [...out.subarray(0, values.length)];
}

const number = fc.float({ min: Math.fround(-1e30), max: Math.fround(1e30), noNaN: true });
const block = fc.array(number, { minLength: 1, maxLength: blockLength });

describe.each(signs)("8-bit moments, %s", (sign) => {
  const own = (values: readonly number[]): number[] =>
    sign === "signed" ? [...values] : values.map(Math.abs);
  const smallest = sign === "signed" ? 2 ** -15.75 : 2 ** -31.75;

  it("are within a sixteenth of what they were, down to the smallest code", () => {
    fc.assert(
      fc.property(block, (values) => {
        const before = own(values);
        const peak = Math.max(...before.map(Math.abs));
        if (peak < 2 ** -126) return;
        for (const [i, v] of kept(before, sign).entries()) {
          const x = before[i] as number;
          const error = Math.abs(v - x);
          const floor = sign === "signed" ? smallest * peak : 2 * smallest * peak;
          expect(error).toBeLessThanOrEqual(Math.abs(x) / 16 + floor + 2 ** -149);
        }
      }),
      { numRuns: 200 },
    );
  });

  it("come back as they are from then on", () => {
    fc.assert(
      fc.property(block, (values) => {
        const once = kept(own(values), sign);
        // A code times a peak may round, but never to another code.
        const twice = kept(once, sign);
        expect(twice).toEqual(once);
      }),
      { numRuns: 200 },
    );
  });

  it("keep zeros, the peak and signs", () => {
    const values = own([0, -0, 3, -3, 1e-3, -1e-3]);
    const after = kept(values, sign);
    expect(after[0]).toBe(0);
    expect(after.slice(2, 4)).toEqual(values.slice(2, 4));
    expect(after.map(Math.sign).map(Math.abs)).toEqual([0, 0, 1, 1, 1, 1]);
    expect(after.slice(2).map(Math.sign)).toEqual(values.slice(2).map(Math.sign));
    expect(kept(own([2 ** -140, 0]), sign)).toEqual([0, 0]);
  });
});

it("an unsigned number that is not 0 never becomes 0", () => {
  const values = [1, 2 ** -60, 2 ** -100, 0];
  const [, small, smaller, zero] = kept(values, "unsigned");
  expect([small, smaller, zero]).toEqual([kept(values, "unsigned")[1], small, 0]);
  expect(small).toBeGreaterThan(0);
  expect(kept(values, "signed")[1]).toBe(0);
});
