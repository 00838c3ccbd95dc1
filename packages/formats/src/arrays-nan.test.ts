import { describe, expect, test } from "vitest";
import {
  bfloat16,
  decodeArray,
  encodeArray,
  type FloatFormat,
  float4e2m1fn,
  float8e4m3fn,
  float8e4m3fnuz,
  float8e5m2,
  float16,
  float32,
  roundArray,
} from "./index.js";

const wordsOf = (values: Float32Array): Uint32Array =>
  new Uint32Array(values.buffer, values.byteOffset, values.length);

describe("NaN policy on float32 bits", () => {
  const nans = Uint32Array.of(0x7fc00000, 0xffc00000, 0x7f800001, 0xff812345, 0x7fffffff);
  const many = new Uint32Array(1000).map((_, i) => nans[i % 5] as number);

  test.each([
    [float16, [0x7e00, 0xfe00, 0x7e00, 0xfe00, 0x7e00]],
    [bfloat16, [0x7fc0, 0xffc0, 0x7fc0, 0xffc1, 0x7fff]],
    [float32, [0x7fc00000, 0xffc00000, 0x7fc00001, 0xffc12345, 0x7fffffff]],
    [float8e5m2, [0x7e, 0xfe, 0x7e, 0xfe, 0x7e]],
    [float8e4m3fn, [0x7f, 0xff, 0x7f, 0xff, 0x7f]],
    [float8e4m3fnuz, [0x80, 0x80, 0x80, 0x80, 0x80]],
  ])("%o: few and many", (format, want) => {
    for (const words of [nans, many]) {
      const codes = [...encodeArray(new Float32Array(words.buffer), format as FloatFormat)];
      expect(codes).toEqual(codes.map((_, i) => want[i % 5]));
    }
  });

  test("without NaN in the format: refused, or the maximum where asked to saturate", () => {
    for (const words of [nans, many]) {
      const values = new Float32Array(words.buffer);
      expect(() => encodeArray(values, float4e2m1fn)).toThrow("float4e2m1fn has no NaN");
      expect(() => roundArray(values, float4e2m1fn)).toThrow(RangeError);
      const saturated = encodeArray(values, float4e2m1fn, undefined, { saturate: true });
      expect(new Set(saturated)).toEqual(new Set([7]));
    }
  });

  test("numbers that are not float32 become the positive quiet NaN", () => {
    const negative = new Float64Array(new BigUint64Array(300).fill(0xfff8000000000001n).buffer);
    for (const values of [negative, negative.subarray(0, 3), [...negative]]) {
      expect(new Set(encodeArray(values, bfloat16))).toEqual(new Set([0x7fc0]));
    }
  });

  test("decoding keeps sign and payload", () => {
    const half = decodeArray(Uint16Array.of(0x7e00, 0xfe00, 0x7c01), float16);
    expect([...wordsOf(half)]).toEqual([0x7fc00000, 0xffc00000, 0x7f802000]);
    const brain = decodeArray(Uint16Array.of(0x7fc0, 0xff81), bfloat16);
    expect([...wordsOf(brain)]).toEqual([0x7fc00000, 0xff810000]);
    const eight = decodeArray(Uint8Array.of(0x7f, 0xff), float8e4m3fn);
    expect([...wordsOf(eight)]).toEqual([0x7fc00000, 0xffc00000]);
  });
});
