import { expect, test } from "vitest";
import { layoutOf, layouts, widthOf } from "./layouts.js";
import { fieldsOf } from "./stored.js";

test("there are sixteen formats, the widest first", () => {
  expect(layouts).toHaveLength(16);
  expect(layouts.map(widthOf)).toEqual(layouts.map(widthOf).toSorted((a, b) => b - a));
});

test("bits become numbers and numbers become bits", () => {
  for (const layout of layouts) {
    const { name, bitsOf, numberOf, real } = layout;
    for (const value of [1, real.finfo.max, real.finfo.smallestSubnormal, real.finfo.min]) {
      const bits = bitsOf(value);
      expect(bits, name).toHaveLength(widthOf(layout));
      expect(numberOf(bits as string), name).toBe(value);
    }
  }
  expect(layoutOf("float64").bitsOf(-2)).toBe(`11${"0".repeat(62)}`);
  expect(layoutOf("float4e2m1fn").bitsOf(Number.NaN)).toBeUndefined();
});

test("the fields of a code say how they make its number", () => {
  const float16 = layoutOf("float16");
  const read = (bits: string) => {
    const { formula, kind } = fieldsOf(float16, bits);
    return [formula, kind];
  };
  expect(read("0010111001100110")).toEqual(["2⁻⁴ × (1 + 614/1,024)", "normal"]);
  expect(read("1000000000000011")).toEqual(["−2⁻¹⁴ × 3/1,024", "subnormal"]);
  expect(read("1000000000000000")).toEqual(["−0", "zero"]);
  expect(read("0111110000000000")).toEqual(["∞", "infinity"]);
  expect(read("0111110000000001")).toEqual(["not a number", "nan"]);
  expect(fieldsOf(layoutOf("float8e8m0fnu"), "00000000").formula).toBe("2⁻¹²⁷");
});
