import { expect, test } from "vitest";
import {
  calculateGain,
  defaultUniform,
  fansOf,
  Generator,
  kaimingNormal,
  kaimingUniform,
  normal,
  uniform,
  xavierNormal,
  xavierUniform,
} from "./index.js";

const linear = [30, 40];
const convolution = [3, 3, 16, 32];

test("fans of linear and convolution weights", () => {
  expect(fansOf(linear)).toEqual({ fanIn: 40, fanOut: 30 });
  expect(fansOf(convolution)).toEqual({ fanIn: 144, fanOut: 288 });
  // torch 2.13: _calculate_fan_in_and_fan_out of [6, 4, 3] and [6, 4, 5, 2, 3], which has the channels first.
  expect(fansOf([3, 4, 6])).toEqual({ fanIn: 12, fanOut: 18 });
  expect(fansOf([5, 2, 3, 4, 6])).toEqual({ fanIn: 120, fanOut: 180 });
  expect(() => fansOf([3])).toThrow("[out, in] and [...window, in, out], not for [3]");
});

// Bounds and standard deviations by the formulas in torch's documentation.
test.each([
  ["kaimingUniform", kaimingUniform, linear, Math.sqrt(6 / 40)],
  ["kaimingUniform", kaimingUniform, convolution, Math.sqrt(6 / 144)],
  ["xavierUniform", xavierUniform, linear, Math.sqrt(6 / 70)],
] as const)("%s is uniform up to its bound: %#", (_, init, shape, bound) => {
  const values = init(shape, new Generator(1));
  expect(values).toHaveLength(shape.reduce((a, b) => a * b, 1));
  const largest = Math.max(...values);
  expect(largest / bound).toBeLessThanOrEqual(1);
  expect(largest / bound).toBeGreaterThan(0.99);
  expect(Math.min(...values) / bound).toBeLessThan(-0.99);
});

test.each([
  ["kaimingNormal", kaimingNormal, linear, Math.sqrt(2 / 40)],
  ["xavierNormal", xavierNormal, convolution, Math.sqrt(2 / 432)],
] as const)("%s has its standard deviation", (_, init, shape, std) => {
  const values = init(shape, new Generator(1));
  const variance = values.reduce((sum, value) => sum + value * value, 0) / values.length;
  const deviations = (variance / std ** 2 - 1) / Math.sqrt(2 / values.length);
  expect(Math.abs(deviations)).toBeLessThan(5);
});

test("options of the kaiming functions", () => {
  const bound = (options: Parameters<typeof kaimingUniform>[2]): number =>
    Math.max(...kaimingUniform(convolution, new Generator(1), options));
  const relu = bound({});
  expect(bound({ mode: "fanOut" }) / relu).toBeCloseTo(Math.SQRT1_2, 6);
  expect(bound({ nonlinearity: "linear" }) / relu).toBeCloseTo(Math.SQRT1_2, 6);
  // torch writes its default for layers as a = √5, which is U(±1/√fanIn).
  const layer = defaultUniform(convolution, new Generator(1), 144);
  expect(bound({ a: Math.sqrt(5) })).toBeCloseTo(Math.max(...layer), 6);
  expect(calculateGain("tanh")).toBe(5 / 3);
  expect(calculateGain("leakyRelu")).toBeCloseTo(Math.sqrt(2 / 1.0001), 12);
});

test("gains are torch's", () => {
  // torch 2.13: torch.nn.init.calculate_gain("leaky_relu", 3), ("leaky_relu", 0.2), ("selu")
  expect(calculateGain("leakyRelu", 3)).toBeCloseTo(0.4472135954999579, 12);
  expect(calculateGain("leakyRelu", 0.2)).toBeCloseTo(1.3867504905630728, 12);
  expect([calculateGain("selu"), calculateGain("sigmoid")]).toEqual([0.75, 1]);
});

test("names that are not known are refused with the known ones", () => {
  const known = '"linear" or "sigmoid" or "tanh" or "relu" or "leakyRelu" or "selu"';
  expect(() => calculateGain("leaky_relu" as never, 3)).toThrow(
    `nonlinearity is "leaky_relu"; pass ${known}`,
  );
  expect(() => calculateGain("toString" as never)).toThrow("nonlinearity is");
  expect(() => calculateGain("leakyRelu", Number.NaN)).toThrow("is NaN; pass a number");
  const draw = (options: object) => () => kaimingNormal(linear, new Generator(1), options);
  expect(draw({ mode: "fan_out" })).toThrow('mode is "fan_out"; pass "fanIn" or "fanOut"');
  expect(draw({ nonlinearity: "gelu" })).toThrow('nonlinearity is "gelu"; pass "linear"');
  expect(draw({ slope: 1 })).toThrow("there is no option slope; pass any of a, mode, nonlinearity");
});

test("bounds and deviations in the wrong order are refused", () => {
  const generator = new Generator(1);
  expect(() => uniform([2], generator, 2, 1)).toThrow("low is 2 and high is 1; pass numbers with");
  expect(() => uniform([2], generator, "0" as never, 1)).toThrow('low is "0" and high is 1');
  expect(() => normal([2], generator, 0, -1)).toThrow("mean is 0 and std is -1; pass numbers with");
  expect(() => xavierUniform([2, 2], generator, "2" as never)).toThrow(
    'gain is "2"; pass a number',
  );
  expect([...uniform([2], generator, 1, 1), ...normal([1], generator, 3, 0)]).toEqual([1, 1, 3]);
});
