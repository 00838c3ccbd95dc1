import { expect, test } from "vitest";
import { numberText, parseNumber, percentText, powerText } from "./number-text.js";

test("numbers are written for reading", () => {
  expect(numberText(65504)).toBe("65,504");
  expect(numberText(0.0999755859375, 17)).toBe("0.0999755859375");
  expect(numberText(2 ** -24)).toBe("5.960464 × 10⁻⁸");
  expect([numberText(-0), numberText(-1.5), numberText(-Infinity), numberText(Number.NaN)]).toEqual(
    ["−0", "−1.5", "−∞", "NaN"],
  );
  expect(powerText(-14)).toBe("2⁻¹⁴");
});

test("shares keep the digits that tell them from none and all", () => {
  expect([0, 1, 1e-9, 0.99999, 0.0123, 0.886].map(percentText)).toEqual([
    "0 %",
    "100 %",
    "< 0.01 %",
    "> 99.9 %",
    "1.2 %",
    "88.6 %",
  ]);
});

test("numbers are read as people type them", () => {
  const read: readonly (readonly [string, number])[] = [
    ["0.1", 0.1],
    ["65,504", 65504],
    ["−1e-7", -1e-7],
    ["2^-14", 2 ** -14],
    ["3 * 2^-24", 3 * 2 ** -24],
    ["1/3", 1 / 3],
    ["-2^2", -4],
    ["-inf", -Infinity],
    ["π", Math.PI],
    ["-0", -0],
    ["nan", Number.NaN],
  ];
  for (const [text, value] of read) expect(parseNumber(text), text).toBe(value);
  for (const text of ["", "a", "1/", "/2", "1**2", "2^", "2^3^4", "1e", "1.2.3", "constructor"]) {
    expect(parseNumber(text), text).toBeUndefined();
  }
});

test("a comma is a decimal point, or divides groups of three", () => {
  const read: readonly [string, number][] = [
    ["0,1", 0.1],
    ["-3,25", -3.25],
    ["1,5e-7", 1.5e-7],
    ["0,125", 0.125],
    ["1,000", 1000],
    ["65,504.5", 65504.5],
    ["1,234,567", 1234567],
  ];
  for (const [text, value] of read) expect(parseNumber(text), text).toBe(value);
  for (const text of ["1,2,3", "1.000,5", "1,00,000", ",", "1,2345,678"])
    expect(parseNumber(text), text).toBeUndefined();
});

test("what is beyond float64 is no number", () => {
  for (const text of ["1e400", "9".repeat(400), "2^5000", "-2^1025", "0.5^-2000"])
    expect(parseNumber(text), text).toBeUndefined();
  expect(parseNumber("inf")).toBe(Infinity);
});
