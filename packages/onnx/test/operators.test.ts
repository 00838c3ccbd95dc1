// Operators of graphs, one by one: shapes and numbers are those of ONNX Runtime.
import type { Tensor } from "@halfstep/tensor";
import { expect, test } from "vitest";
import { dataType } from "../src/data-type.js";
import { elementwiseOnHost, permuted } from "../src/import/host-ops.js";
import { HostTensor } from "../src/import/host-tensor.js";
import { fromOnnx } from "../src/index.js";
import { runtime, waves } from "./cases.js";
import { type Constant, difference, fileOf } from "./one-node.js";

test.each(["Max", "Min"])("%s takes any number of operands", async (operator) => {
  const [a, b, c] = [waves([2, 3]), waves([3]).neg(), waves([2, 1]).mul(0.5)];
  expect(await difference(operator, {}, { a })).toBe("");
  expect(await difference(operator, {}, { a, b })).toBe("");
  expect(await difference(operator, {}, { a, b, c })).toBe("");
  const bound: Constant = { shape: [], values: [0.25] };
  expect(await difference(operator, {}, { a, bound })).toBe("");
  expect(await difference(operator, {}, { bound, a, b })).toBe("");
});

const int64 = (values: readonly number[], shape = [values.length]): Constant => ({
  ...{ type: dataType.INT64, shape, values },
});
const { INT64: int, BOOL: bool } = dataType;

test("quotients of integers are rounded toward zero", async () => {
  const whole = [7, -7, 7, -7, 0, 16_777_217, 2_000_000_000, -2_147_483_647, 99_999_999];
  const by = [2, 2, -2, -2, 5, 3, 1, 7, 9_999_999];
  const a = runtime.tensor(Int32Array.from(whole), [9]);
  const b = runtime.tensor(Int32Array.from(by), [9]);
  expect(await difference("Div", {}, { a, b }, { output: int })).toBe("");
  expect(await difference("Div", {}, { a, b: int64([3], []) }, { output: int })).toBe("");
  expect(await difference("Div", {}, { a: int64([-100]), b }, { output: int })).toBe("");
  const c = runtime.tensor(Uint32Array.of(2_147_483_647, 2_000_000_001, 7, 16_777_217), [4]);
  const d = runtime.tensor(Uint32Array.of(2_000_000_001, 3, 9, 1), [4]);
  expect(await difference("Div", {}, { c, d }, { output: int })).toBe("");
  const f = waves([9]);
  expect(await difference("Div", {}, { f, b: { shape: [], values: [3] } })).toBe("");
});

test("integers of int64 are signed, whatever holds them", async () => {
  const [a, b] = [Uint32Array.of(1, 2, 3), Uint32Array.of(3, 1, 4)].map((x) => runtime.tensor(x));
  if (!a || !b) throw new Error("unreachable");
  const mask = runtime.tensor(Uint32Array.of(1, 0, 1), [3]);
  const minus = int64([-1, -2, -3]);
  expect(await difference("Sub", {}, { a, b }, { output: int })).toBe("");
  expect(await difference("Sub", {}, { a, b: int64([5], []) }, { output: int })).toBe("");
  expect(await difference("Neg", {}, { a }, { output: int })).toBe("");
  expect(await difference("Concat", { axis: 0 }, { a, minus }, { output: int })).toBe("");
  const widths = int64([1, 1]);
  const padded = { a, widths, value: int64([-1], []) };
  expect(await difference("Pad", {}, padded, { output: int })).toBe("");
  const choices = { mask, five: int64([5, 0, 7]), one: int64([-1], []) };
  expect(await difference("Where", {}, choices, { output: int })).toBe("");
  // What follows computes with these.
  const resultOf = (bytes: Uint8Array, given: Readonly<Record<string, Tensor>>) =>
    fromOnnx(runtime, bytes).forward(given).y?.dtype;
  const asInt = fileOf("Cast", { to: int }, { mask }, { output: int });
  expect(resultOf(asInt, { mask })).toBe("int32");
  const x = waves([2, 3]);
  for (const operator of ["ArgMax", "ArgMin"])
    expect(resultOf(fileOf(operator, {}, { x }, { output: int }), { x })).toBe("int32");
});

test("constants beyond 32 bits are bounds, and refused elsewhere", async () => {
  const a = runtime.tensor(Int32Array.of(1, -2, 2_000_000_000));
  const largest = runtime.tensor(Int32Array.of(2_147_483_647, -2_147_483_648));
  const far = [2 ** 40, -(2 ** 40), 2 ** 62];
  for (const [operator, sign] of [
    ["Min", 1],
    ["Max", -1],
  ] as const)
    for (const b of [
      int64([sign * 2 ** 40, sign * 2 ** 31, sign * 2 ** 62]),
      int64([sign * 2 ** 62], []),
    ])
      expect(await difference(operator, {}, { a, b }, { output: int })).toBe("");
  for (const operator of ["Equal", "Less", "Greater", "LessOrEqual", "GreaterOrEqual"])
    for (const [x, b] of [
      [a, int64(far)],
      [a, int64([2 ** 32 + 1], [])],
      [largest, int64([2 ** 40], [])],
    ] as const)
      expect(await difference(operator, {}, { x, b }, { output: bool })).toBe("");
  for (const operator of ["Add", "Sub", "Mul", "Div"]) {
    const b = int64(far);
    const model = fromOnnx(runtime, fileOf(operator, {}, { a, b }, { output: int }));
    expect(() => model.forward({ a })).toThrow("1099511627776, which 32 bits do not hold");
  }
});

test("powers of integers are integers", async () => {
  const a = runtime.tensor(Int32Array.of(3, -7, 0, 1290));
  for (const exponent of [0, 1, 2, 3])
    expect(await difference("Pow", {}, { a, p: int64([exponent], []) }, { output: int })).toBe("");
  const half: Constant = { shape: [], values: [0.5] };
  const model = fromOnnx(runtime, fileOf("Pow", {}, { a, half }, { output: int }));
  expect(() => model.forward({ a })).toThrow("of integers, with an exponent that is no constant");
});

test("remainders have the sign of the divisor, or that of the dividend with fmod", async () => {
  const whole = [7, -7, 7, -7, 0, 16_777_217, -2_147_483_647, 99_999_999];
  const by = [3, 3, -3, -3, 5, 3, 7, 9_999_999];
  const a = runtime.tensor(Int32Array.from(whole), [8]);
  const b = runtime.tensor(Int32Array.from(by), [8]);
  for (const fmod of [0, 1]) {
    expect(await difference("Mod", { fmod }, { a, b }, { output: int })).toBe("");
    expect(await difference("Mod", { fmod }, { a, b: int64([-5], []) }, { output: int })).toBe("");
  }
  // Numbers of the file are computed on the host.
  const constant = (values: readonly number[]): HostTensor =>
    new HostTensor(dataType.FLOAT, [values.length], values);
  const numbers = [constant([5.5, -5.5, 5.5, -5.5]), constant([2, 2, -2, -2])];
  expect(elementwiseOnHost("Mod", numbers, false).list).toEqual([1.5, 0.5, -0.5, -1.5]);
  expect(elementwiseOnHost("Mod", numbers, true).list).toEqual([1.5, -1.5, 1.5, -1.5]);
});

test("IsInf finds the infinities that it is asked for", async () => {
  const x = runtime.tensor([1 / 0, -1 / 0, 0 / 0, 1, 0], [5]);
  for (const detect_negative of [0, 1])
    for (const detect_positive of [0, 1]) {
      const attributes = { detect_negative, detect_positive };
      expect(await difference("IsInf", attributes, { x }, { output: bool })).toBe("");
    }
});

test.each(["ArgMax", "ArgMin"])(
  "%s takes the first or the last of equal numbers",
  async (operator) => {
    const x = runtime.tensor([1, 3, 3, 1, 2, 2, 2, 2], [2, 4]);
    for (const select_last_index of [0, 1])
      for (const axis of [0, 1])
        for (const keepdims of [0, 1]) {
          const attributes = { select_last_index, axis, keepdims };
          expect(await difference(operator, attributes, { x }, { output: int })).toBe("");
        }
  },
);

test("casts to smaller integers keep the lowest bits", async () => {
  const { UINT8, INT8, UINT16, INT16, INT32, UINT32 } = dataType;
  const whole = [1, 300, 70_000, -1, -200, 128, 255, 32_768, 2_147_483_647, -2_147_483_648];
  const x = runtime.tensor(Int32Array.from(whole), [10]);
  const u = runtime.tensor(Uint32Array.from([1, 200, 70_000, 255, 40_000]), [5]);
  const f = runtime.tensor([1.7, 100.2, -3.9, 0, 0.5], [5]);
  for (const to of [UINT8, INT8, UINT16, INT16, INT32, UINT32, bool]) {
    expect([to, await difference("Cast", { to }, { x }, { output: to })]).toEqual([to, ""]);
    expect([to, await difference("Cast", { to }, { u }, { output: to })]).toEqual([to, ""]);
  }
  for (const to of [INT8, INT16, INT32, int, bool])
    expect([to, await difference("Cast", { to }, { f }, { output: to })]).toEqual([to, ""]);
});

test("Where has the dimensions of a constant of more of them", async () => {
  const mask = runtime.tensor(Uint32Array.of(1, 0, 1), [3]);
  const [x, five] = [waves([3]), { shape: [1, 1], values: [5] }];
  expect(await difference("Where", {}, { mask, five, x })).toBe("");
  expect(await difference("Where", {}, { mask, x, five })).toBe("");
  expect(await difference("Where", {}, { mask, x, five: { shape: [], values: [5] } })).toBe("");
});

test("constants of integers are transposed", () => {
  const x = HostTensor.integers([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12], [2, 3, 2]);
  const turned = permuted(x, [2, 0, 1]);
  expect(turned.shape).toEqual([2, 2, 3]);
  expect(turned.list).toEqual([1, 3, 5, 7, 9, 11, 2, 4, 6, 8, 10, 12]);
  expect(permuted(HostTensor.integers([], [0, 3]), [1, 0]).shape).toEqual([3, 0]);
});
