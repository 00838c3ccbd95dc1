import { expect, test } from "vitest";
import { layoutOf } from "./layouts.js";
import { axes, chartWidth, niceNumber, outlineOf, positionOfNumber } from "./reach.js";

test("numbers have a place from zero at the left end to infinity at the right one", () => {
  const place = (value: number) => positionOfNumber(axes.training, value);
  expect([0, -Infinity, Number.NaN].map(place)).toEqual([0, chartWidth, undefined]);
  expect(place(-1)).toBe(place(1));
  expect(place(2)).toBeGreaterThan(place(1) as number);
});

test("a place is a number with two digits", () => {
  const { low, high } = axes.training;
  expect(niceNumber(axes.training, (-14 - low) / (high - low))).toBe(6.1e-5);
  expect([niceNumber(axes.training, -1), niceNumber(axes.training, 2)]).toEqual([0, Infinity]);
});

test("an outline ends in a point where numbers are subnormal", () => {
  expect(outlineOf(axes.training, layoutOf("float16"), 34)).toMatchInlineSnapshot(
    `"M323.5 16.06L470.6 13.66L911.8 13.66L911.8 20.34L470.6 20.34L323.5 17.94Z"`,
  );
});
