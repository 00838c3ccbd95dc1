import { requestTestDevice, testTiers } from "@halfstep/device/testing";
import { describe, expect, it } from "vitest";
import { deviceMismatches, type Launches, runOnCpu, testValues } from "../../test/harness.js";
import { type TopKAttributes, topK } from "./top-k.js";

type Case = TopKAttributes & { readonly dtype: "float32" | "float16" | "bfloat16" };

const cases: readonly Case[] = [
  { rows: 33, columns: 10, k: 3, dtype: "float32" },
  { rows: 2, columns: 5, k: 5, dtype: "float32" },
  { rows: 0, columns: 3, k: 1, dtype: "float32" },
  // Three rounds, of 5, 1 and the last chunk.
  { rows: 3, columns: 4500, k: 300, dtype: "float32" },
  { rows: 3, columns: 2049, k: 7, dtype: "float32", largest: false },
  { rows: 70, columns: 8, k: 4, dtype: "float16" },
  { rows: 5, columns: 1500, k: 11, dtype: "float16", largest: false, sorted: false },
  { rows: 6, columns: 7, k: 7, dtype: "bfloat16", sorted: false },
  { rows: 2, columns: 3000, k: 9, dtype: "bfloat16" },
  // Runs of 256, 256 and 188 elements, which are merged in two rounds.
  { rows: 3, columns: 700, k: 700, dtype: "float32", largest: false },
  { rows: 2, columns: 1500, k: 600, dtype: "float16" },
];

const operandsOf = ({ rows, columns, k, dtype }: Case) => {
  // Few values, so that many are equal; some rows have infinities, NaNs and zeros of both signs, and one is all the same.
  const values = testValues(rows * columns, columns).map((v) => Math.round(v * 60) / 8);
  const special = [Number.NaN, Infinity, -Infinity, -0, 2 ** -14];
  for (let i = 7; i < values.length; i += 13) values[i] = special[i % 5] as number;
  if (rows > 1) values.fill(-2, columns, 2 * columns);
  return { input: { values, dtype }, out: { values: rows * k, dtype: "uint32" } } as const;
};

const launches =
  (check: Case): Launches<ReturnType<typeof operandsOf>> =>
  (target, bindings) =>
    topK(target, bindings, check);

/** NaN is larger than every number; everything else is ordered. */
const keyOf = (value: number): number =>
  Number.isNaN(value) ? 1e300 : value === Infinity ? 1e299 : value;

const tiers = await testTiers();

describe("topK", () => {
  it("finds the best of each row, the first of equals", () => {
    for (const check of cases) {
      const { columns, k, largest = true, sorted = true } = check;
      const { input, out } = runOnCpu(operandsOf(check), launches(check));
      const want = Array.from({ length: check.rows }, (_, r) => {
        const keys = Array.from(input.subarray(r * columns, (r + 1) * columns), keyOf);
        const places = keys.map((_key, c) => c);
        const sign = largest ? 1 : -1;
        // Infinities may not be subtracted.
        const order = (a: number, b: number): number => (a === b ? 0 : a < b ? sign : -sign);
        places.sort((a, b) => order(keys[a] as number, keys[b] as number) || a - b);
        const best = places.slice(0, k);
        return sorted ? best : best.sort((a, b) => a - b);
      });
      expect([...out]).toEqual(want.flat());
    }
  });

  it("refuses a k that no row has", () => {
    const binding = { buffer: 0, offset: 0, length: 6, dtype: "float32" } as const;
    const target = { allocate: () => 0, launch: () => {} };
    for (const k of [0, 4, 1.5])
      expect(() =>
        topK(target, { input: binding, out: binding }, { rows: 2, columns: 3, k }),
      ).toThrow("need 1 to 3");
  });

  it.each(tiers)("equals the reference on the GPU, %s tier", async (tier) => {
    const device = await requestTestDevice({ tier });
    const found: string[] = [];
    // Programs of float32 have one text on both tiers.
    for (const check of cases.filter(({ dtype }) => tier !== "packed" || dtype === "float16"))
      found.push(
        ...(await deviceMismatches(device, operandsOf(check), launches(check), {
          out: { relative: 0, absolute: 0 },
        })),
      );
    expect(found).toEqual([]);
  });
});
