import { expect, test } from "vitest";
import { type LayoutName, layoutOf } from "./layouts.js";
import { lossText, store } from "./stored.js";

test("what a format makes of a number is said in words", () => {
  const loss = (name: LayoutName, wished: number): string =>
    lossText(store(layoutOf(name), wished));
  expect(loss("float16", 0.5)).toBe("exact");
  expect(loss("float16", 0.1)).toBe("−0.024 %");
  expect(loss("float32", 0.1)).toBe("+1.5e-6 %");
  expect(loss("float16", -0.1)).toBe("+0.024 %");
  expect(loss("float16", 1e-9)).toBe("becomes 0");
  expect(loss("float16", 70000)).toBe("becomes ∞");
  expect(loss("float8e4m3fn", 500)).toBe("becomes NaN");
  expect(loss("float4e2m1fn", -500)).toBe("cut to its largest");
  expect(loss("float4e2m1fn", -Infinity)).toBe("cut to its largest");
  expect(loss("float4e2m1fn", Number.NaN)).toBe("has no NaN");
  expect(loss("float8e8m0fnu", -1)).toBe("becomes NaN");
});
