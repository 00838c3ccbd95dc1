import { expect, test } from "vitest";
import {
  type EncodeOptions,
  type FormatName,
  float16,
  formatOf,
  type Rounding,
} from "../src/index.js";
import float16Rows from "./golden/float16.json" with { type: "json" };
import golden from "./golden/formats.json" with { type: "json" };

const view = new DataView(new ArrayBuffer(8));

function float64Of(hex: string): number {
  view.setBigUint64(0, BigInt(`0x${hex.padEnd(16, "0")}`));
  return view.getFloat64(0);
}

// In the order of the digits of a row.
const exact = ["nearestEven", "nearestAway", "towardZero", "down", "up", "odd"] as const;
const words = [0, 0x5a5a5a5a, 0x00ffffff, 0xffffffff];
const columns: EncodeOptions[] = [false, true].flatMap((saturate) => [
  ...exact.map((rounding) => ({ rounding, saturate })),
  ...words.map((bits) => ({ rounding: "stochastic" as Rounding, saturate, bits })),
]);

const formats = Object.entries(golden).map(([name, section]) => ({
  format: formatOf(name as FormatName),
  rows: section.rows as [number: string, codes: number[], choices: string][],
  decoded: "decoded" in section ? section.decoded.split(" ") : [],
}));

test.each(formats)(
  "every rounding to $format.name is that of exact fractions",
  ({ format, rows }) => {
    const mismatches: unknown[] = [];
    for (const [hex, codes, choices] of rows) {
      const value = float64Of(hex);
      columns.forEach((options, i) => {
        const want = codes[Number(choices[i])];
        let code = -1;
        try {
          code = format.encode(value, options);
        } catch (error) {
          if (!(error instanceof RangeError)) throw error;
        }
        if (code !== want) mismatches.push({ value, ...options, code, want });
      });
    }
    expect(rows.length).toBeGreaterThan(60);
    expect(mismatches).toEqual([]);
  },
);

const small = formats.filter(({ decoded }) => decoded.length > 0);

test("ml_dtypes decodes all formats of up to 8 bits", () => {
  expect(small.length).toBe(11);
});

test.each(small)("every code of $format.name means what ml_dtypes says", ({ format, decoded }) => {
  const values = decoded.map((hex) => (hex === "nan" ? Number.NaN : float64Of(hex)));
  expect(values.length).toBe(2 ** format.bits);
  expect(values.map((_, code) => format.decode(code))).toEqual(values);
});

test("float16 equals numpy on float64 inputs around every kind of tie", () => {
  const rows = float16Rows as [bits: string, code: number][];
  const mismatches = rows.filter(([hex, code]) => float16.encode(float64Of(hex)) !== code);
  expect(rows.length).toBeGreaterThan(1000);
  expect(mismatches).toEqual([]);
});
