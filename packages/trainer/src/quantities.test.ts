import { expect, it } from "vitest";
import { formatBytes, formatDuration, formatNumber, formatScale } from "./quantities.js";

it.each([
  [0, "0 B"],
  [1023, "1023 B"],
  [1024, "1.0 KiB"],
  [234_567, "229 KiB"],
  [39_007_027, "37.2 MiB"],
  [3 * 2 ** 40, "3.0 TiB"],
  [5000 * 2 ** 40, "5000 TiB"],
])("shows %d bytes as %s", (bytes, expected) => {
  expect(formatBytes(bytes)).toBe(expected);
});

it.each([
  [0.4, "0 s"],
  [59.4, "59 s"],
  [59.6, "1 min 00 s"],
  [3599, "59 min 59 s"],
  [7620, "2 h 07 min"],
])("shows %d seconds as %s", (seconds, expected) => {
  expect(formatDuration(seconds)).toBe(expected);
});

it.each([
  [65536, "65,536"],
  [1, "1"],
  [2 ** -16, "0.00001526"],
])("shows the scale %d as %s", (scale, expected) => {
  expect(formatScale(scale)).toBe(expected);
});

it.each([
  [1234.5, "1,235"],
  [99.95, "100"],
  [12.34, "12.3"],
  [0.01234, "0.0123"],
])("shows %d as %s", (value, expected) => {
  expect(formatNumber(value)).toBe(expected);
});
