import { requestTestDevice, testTiers } from "@halfstep/device/testing";
import { describe, expect, it } from "vitest";
import { deviceMismatches, runOnCpu, testValues } from "../../test/harness.js";
import { argmax } from "./argmax.js";

const operandsOf = (rows: number, columns: number, dtype: "float32" | "float16" | "bfloat16") => {
  // Eight values only, so that maxima have equals; some rows have a NaN, some two, some only -∞.
  const values = testValues(rows * columns).map((v) => Math.round(v * 4));
  for (let i = 7; i < values.length; i += 13) values[i] = [Number.NaN, Infinity][i % 2] as number;
  if (rows > 1) values.fill(-Infinity, columns, 2 * columns);
  return { input: { values, dtype }, out: { values: rows, dtype: "uint32" } } as const;
};

const cases = [
  [33, 10, "float32"],
  [5, 1, "float32"],
  [0, 3, "float32"],
  [70, 8, "float16"],
  [6, 7, "bfloat16"],
] as const;

const tiers = await testTiers();

describe("argmax", () => {
  it("finds the first of equal maxima, the first NaN before all", () => {
    const found = cases.flatMap(([rows, columns, dtype]) => {
      const { input, out } = runOnCpu(operandsOf(rows, columns, dtype), (target, bindings) =>
        target.launch(argmax(bindings, { rows, columns })),
      );
      return Array.from(out).flatMap((winner, r) => {
        const row = Array.from(input.subarray(r * columns, (r + 1) * columns));
        const nan = row.findIndex(Number.isNaN);
        const want = nan < 0 ? row.indexOf(Math.max(...row)) : nan;
        return winner === want ? [] : [`row ${r} of [${rows},${columns}]: ${winner}, not ${want}`];
      });
    });
    expect(found).toEqual([]);
  });

  it("refuses rows without columns", () => {
    const binding = { buffer: 0, offset: 0, length: 0, dtype: "float32" } as const;
    const out = { ...binding, length: 2, dtype: "uint32" } as const;
    expect(() => argmax({ input: binding, out }, { rows: 2, columns: 0 })).toThrow("no maximum");
  });

  it.each(tiers)("equals the reference on the GPU, %s tier", async (tier) => {
    const device = await requestTestDevice({ tier });
    const found: string[] = [];
    for (const [rows, columns, dtype] of cases)
      found.push(
        ...(await deviceMismatches(
          device,
          operandsOf(rows, columns, dtype),
          (target, bindings) => target.launch(argmax(bindings, { rows, columns })),
          { out: { relative: 0, absolute: 0 } },
        )),
      );
    expect(found).toEqual([]);
  });
});
