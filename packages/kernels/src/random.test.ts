import { requestTestDevice, testTiers } from "@halfstep/device/testing";
import { philox4x32 } from "@halfstep/formats/philox";
import { describe, expect, it } from "vitest";
import { deviceMismatches, type Launches, runOnCpu, testValues } from "../test/harness.js";
import { bernoulli, dropout, normal, uniform } from "./random.js";
import { randomIntegers } from "./random-integers.js";

// The block crosses 2^32 within the draw, and the seed has a high word.
const source = { seed: 2 ** 40 + 7, block: 2 ** 32 - 3, stream: 5 };
const count = 1003;
const input = { values: testValues(count).map((v) => (v === 0 ? 1 : v)) };
const result = { values: count };
const operands = { input, uniform: result, bernoulli: result, dropped: result, normal: result };

const launches: Launches<typeof operands> = (target, o) => {
  target.launch(uniform(o.uniform, source, { low: 0, high: 1 }));
  target.launch(bernoulli(o.bernoulli, source, 0.3));
  target.launch(dropout({ input: o.input, out: o.dropped }, source, 0.7));
  target.launch(normal(o.normal, source, { mean: 2, deviation: 3 }));
};

const moments = (x: ArrayLike<number>): readonly [number, number] => {
  const values = Array.from(x);
  const mean = values.reduce((a, b) => a + b, 0) / values.length;
  return [mean, values.reduce((a, b) => a + (b - mean) ** 2, 0) / values.length];
};

const tiers = await testTiers();

describe("random numbers", () => {
  const got = runOnCpu(operands, launches);

  it("are the words of Philox, a block a quad", () => {
    const expected = Array.from({ length: count }, (_, e) => {
      const block = source.block + Math.floor(e / 4);
      const counter = [block >>> 0, Math.floor(block / 2 ** 32), 0, 5] as const;
      const words = philox4x32(counter, [7, 2 ** 8]);
      return ((words[e % 4] as number) >>> 8) / 2 ** 24;
    });
    expect([...got.uniform]).toEqual(expected);
    expect([...got.bernoulli]).toEqual(expected.map((u) => (u < 0.3 ? 1 : 0)));
  });

  it("drop what they say, and scale the rest", () => {
    const factor = Math.fround(1 / (1 - 0.7));
    const wrong = [...got.dropped].filter((y, e) => {
      const kept = (got.uniform[e] as number) < 1 - 0.7;
      return Math.abs(y - (kept ? (got.input[e] as number) * factor : 0)) > 1e-6;
    });
    expect(wrong).toEqual([]);
  });

  it("drop nothing at 0 and everything at 1, infinities too", () => {
    const drop = (p: number) =>
      runOnCpu({ input: { values: [1, Infinity, -2] }, out: { values: 3 } }, (target, o) =>
        target.launch(dropout(o, source, p)),
      ).out;
    expect([...drop(0)]).toEqual([1, Infinity, -2]);
    expect([...drop(1)]).toEqual([0, 0, 0]);
  });

  it("have the moments of their distributions", () => {
    const many = { values: 40_000 };
    const { u, n } = runOnCpu({ u: many, n: many }, (target, o) => {
      target.launch(uniform(o.u, source, { low: -1, high: 3 }));
      target.launch(normal(o.n, source, { mean: 2, deviation: 3 }));
    });
    // Four standard errors each.
    const near = ([mean, variance]: readonly [number, number], m: number, v: number): boolean =>
      Math.abs(mean - m) < 4 * Math.sqrt(v / 40_000) && Math.abs(variance / v - 1) < 0.03;
    expect([near(moments(u), 1, 16 / 12), near(moments(n), 2, 9)]).toEqual([true, true]);
    expect(Math.max(...n)).toBeGreaterThan(2 + 3 * 3.4);
    // Neighbours are independent.
    const centred = Array.from(n, (v) => (v - 2) / 3);
    const products = centred.slice(1).map((v, i) => v * (centred[i] as number));
    expect(Math.abs(moments(products)[0])).toBeLessThan(4 / Math.sqrt(40_000));
  });

  it("are whole numbers of any range of 32 bits, as probable as each other", () => {
    // Of three quarters of 2^32 numbers, 32 random bits would draw every third one twice as often.
    const count = 3 * 2 ** 30;
    const out = { values: 40_000, dtype: "uint32" } as const;
    const { y } = runOnCpu({ y: out }, (target, { y }) =>
      target.launch(randomIntegers({ ...y, dtype: "uint32" }, source, { low: 5, count })),
    );
    expect([Math.min(...y) >= 5, Math.max(...y) < count + 5]).toEqual([true, true]);
    const shares = [0, 1, 2].map((r) => y.filter((v) => (v - 5) % 3 === r).length / 40_000);
    for (const share of shares) expect(Math.abs(share - 1 / 3)).toBeLessThan(0.01);
    expect(Math.abs(moments(y)[0] / (count / 2) - 1)).toBeLessThan(0.012);
  });

  it.each(tiers)("whole numbers are the same on the GPU, %s tier", async (tier) => {
    const int = { values: count, dtype: "int32" } as const;
    const uint = { values: count, dtype: "uint32" } as const;
    const operands = { die: int, whole: int, small: uint, all: uint };
    const draws: Launches<typeof operands> = (target, { die, whole, small, all }) => {
      const [ofInt, ofUint] = [{ dtype: "int32" }, { dtype: "uint32" }] as const;
      target.launch(randomIntegers({ ...die, ...ofInt }, source, { low: -3, count: 6 }));
      const range = { low: -(2 ** 31), count: 2 ** 32 };
      target.launch(randomIntegers({ ...whole, ...ofInt }, source, range));
      target.launch(randomIntegers({ ...small, ...ofUint }, source, { low: 7, count: 1 }));
      target.launch(randomIntegers({ ...all, ...ofUint }, source, { low: 1, count: 2 ** 32 - 1 }));
    };
    const exact = { relative: 0, absolute: 0 };
    const device = await requestTestDevice({ tier });
    const all = { die: exact, whole: exact, small: exact, all: exact };
    expect(await deviceMismatches(device, operands, draws, all)).toEqual([]);
    expect(new Set(runOnCpu(operands, draws).small)).toEqual(new Set([7]));
  });

  it.each(tiers)("are the same on the GPU, bit for bit, %s tier", async (tier) => {
    const device = await requestTestDevice({ tier });
    const exact = { relative: 0, absolute: 0 };
    const found = await deviceMismatches(device, operands, launches, {
      uniform: exact,
      bernoulli: exact,
      dropped: exact,
      // Logarithms and roots may differ in their last bits.
      normal: { relative: 1e-5, absolute: 1e-5 },
    });
    expect(found).toEqual([]);
  });
});
