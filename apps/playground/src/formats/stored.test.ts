import { expect, test } from "vitest";
import { type LayoutName, layoutOf, layouts } from "./layouts.js";
import { fieldsOf, lossText, store } from "./stored.js";
import { stories } from "./stories.js";

test("what a format makes of a number is said in words", () => {
  const loss = (name: LayoutName, wished: number): string =>
    lossText(store(layoutOf(name), wished));
  expect(loss("float16", 0.5)).toBe("exact");
  expect(loss("float16", 0.1)).toBe("−0.024 %");
  expect(loss("float32", 0.1)).toBe("+1.5 × 10⁻⁶ %");
  expect(loss("float16", -0.1)).toBe("+0.024 %");
  expect(loss("float16", 1e-9)).toBe("becomes 0");
  expect(loss("float16", 70000)).toBe("becomes ∞");
  expect(loss("float8e4m3fn", 500)).toBe("becomes NaN");
  expect(loss("float4e2m1fn", -500)).toBe("cut to its largest");
  expect(loss("float4e2m1fn", -Infinity)).toBe("cut to its largest");
  expect(loss("float4e2m1fn", Number.NaN)).toBe("has no NaN");
  expect(loss("float8e8m0fnu", -1)).toBe("becomes NaN");
});

test("an exponent below zero has a minus, in subnormals, too", () => {
  expect(fieldsOf(layoutOf("float16"), "0000000000000001").said.exponent).toBe(
    "zero stands for −14, without the 1",
  );
});

test("the story of 3 × 10³⁸ names each narrower format that comes this far", () => {
  const { value, text } = stories.find(({ format }) => format === "float32") ?? {};
  const far = layouts.filter((layout) =>
    ["exact", "rounded"].includes(store(layout, value as number).outcome),
  );
  expect(far.map(({ name }) => name)).toEqual(["float64", "float32", "tfloat32", "bfloat16"]);
  expect(text).toContain("only tfloat32 and bfloat16 come this far");
});
