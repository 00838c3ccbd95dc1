import { expect, test } from "vitest";
import { float8e4m3fn } from "../float8e4m3fn.js";
import { decodeNvfp4, encodeNvfp4, nvfp4TensorScale } from "./nvfp4.js";

test("the largest block uses the largest scale", () => {
  const values = Float32Array.from({ length: 32 }, (_, i) => (i < 16 ? 12 : 0.75));
  const nvfp4 = encodeNvfp4(values);
  expect(nvfp4.tensorScale).toBe(Math.fround(12 / 2688));
  expect([...nvfp4.scales].map((code) => float8e4m3fn.decode(code))).toEqual([448, 28]);
  expect([...nvfp4.codes]).toEqual(new Array(32).fill(7));
  const decoded = decodeNvfp4(nvfp4);
  expect(decoded[0]).toBeCloseTo(12, 5);
  expect(decoded[16]).toBeCloseTo(0.75, 6);
});

test("the tensor scale is 1 without numbers and stays a normal float32", () => {
  expect([0, Number.NaN, Infinity].map(nvfp4TensorScale)).toEqual([1, 1, 1]);
  expect(nvfp4TensorScale(2 ** -149)).toBe(2 ** -126);
});

test("a small block keeps the smallest scale, a block of zeros has 0", () => {
  const values = Float32Array.from({ length: 48 }, (_, i) => [2688, 1e-3, 0][i >> 4] as number);
  const nvfp4 = encodeNvfp4(values, { tensorScale: 1 });
  expect([...nvfp4.scales]).toEqual([0x7e, 1, 0]);
  expect([...decodeNvfp4(nvfp4).subarray(16, 17)]).toEqual([2 ** -10]);
  expect([...decodeNvfp4(nvfp4).subarray(32)]).toEqual(new Array(16).fill(0));
});

test("a NaN or an infinity makes its block NaN, and no other", () => {
  for (const bad of [Number.NaN, Infinity, -Infinity]) {
    const values = Float32Array.from({ length: 20 }, (_, i) => (i === 18 ? bad : 6));
    const nvfp4 = encodeNvfp4(values, { tensorScale: 1 });
    expect([...nvfp4.scales]).toEqual([float8e4m3fn.encode(1), 0x7f]);
    expect([...decodeNvfp4(nvfp4)]).toEqual([
      ...new Array(16).fill(6),
      ...new Array(4).fill(Number.NaN),
    ]);
  }
});

test("a given tensor scale saturates block scales and elements", () => {
  const decoded = decodeNvfp4(encodeNvfp4([5000, -3000, 1000], { tensorScale: 1 }));
  expect([...decoded]).toEqual([2688, -2688, 896]);
});

test("what is no tensor scale, and scales that do not fit, are refused", () => {
  for (const tensorScale of [0, -1, Number.NaN, Infinity, 1e-60]) {
    expect(() => encodeNvfp4([1], { tensorScale })).toThrow("is no positive float32");
  }
  const nvfp4 = encodeNvfp4([1]);
  expect(() => decodeNvfp4({ ...nvfp4, scales: new Uint8Array(2) })).toThrow(
    "decodeNvfp4: 1 blocks need as many scales, not 2",
  );
  expect(() => encodeNvfp4([1, 2, 3], { columns: 2 })).toThrow(RangeError);
});
