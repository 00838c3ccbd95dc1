import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { encodeArray } from "../arrays.js";
import { bfloat16 } from "../bfloat16.js";
import { float4e2m1fn } from "../float4e2m1fn.js";
import { float8e4m3fn } from "../float8e4m3fn.js";
import { float8e5m2 } from "../float8e5m2.js";
import { float16 } from "../float16.js";
import type { FloatFormat } from "../format.js";
import { decodeScaled, encodeScaled, scaleOf } from "./scaled.js";

describe("scaleOf", () => {
  test("amax lands on the format's maximum", () => {
    expect(scaleOf(448, float8e4m3fn)).toBe(1);
    expect(scaleOf(1, float8e4m3fn)).toBe(Math.fround(1 / 448));
    expect(scaleOf(896, float8e4m3fn, { powerOfTwo: true })).toBe(2);
    expect(scaleOf(897, float8e4m3fn, { powerOfTwo: true })).toBe(4);
  });

  test("0, NaN and infinity have scale 1", () => {
    expect([0, Number.NaN, Infinity].map((amax) => scaleOf(amax, float16))).toEqual([1, 1, 1]);
  });

  test("it stays a normal float32", () => {
    for (const powerOfTwo of [false, true]) {
      expect(scaleOf(Number.MIN_VALUE, float16, { powerOfTwo })).toBe(2 ** -126);
      const largest = scaleOf(Number.MAX_VALUE, float4e2m1fn, { powerOfTwo });
      expect(largest).toBe(powerOfTwo ? 2 ** 127 : 3.4028234663852886e38);
    }
  });

  test("a power of two is the least with room", () => {
    fc.assert(
      fc.property(fc.double({ min: 1e-30, max: 1e30, noNaN: true }), (amax) => {
        const scale = scaleOf(amax, float8e5m2, { powerOfTwo: true });
        const { max } = float8e5m2.finfo;
        return amax <= max * scale && amax > (max * scale) / 2;
      }),
    );
  });
});

describe("encodeScaled", () => {
  test("rows have scales of their own", () => {
    const values = [1, -2, 1e-6, 2e-6];
    const scaled = encodeScaled(values, float8e4m3fn, { columns: 2 });
    expect([...scaled.scales]).toEqual([Math.fround(2 / 448), Math.fround(2e-6 / 448)]);
    const back = decodeScaled(scaled);
    values.forEach((value, i) => {
      expect(back[i]).toBeCloseTo(value, 12);
    });
    expect(encodeScaled(values, float8e4m3fn).scales).toHaveLength(1);
  });

  test("non-finite numbers do not count for the scale", () => {
    const values = [4, Number.NaN, Infinity, -Infinity];
    const scaled = encodeScaled(values, float8e5m2, { powerOfTwo: true });
    expect([...scaled.scales]).toEqual([2 ** -13]);
    expect([...decodeScaled(scaled)]).toEqual(values);
    const all = encodeScaled(values, float8e5m2, { powerOfTwo: true, saturate: true });
    expect([...decodeScaled(all)]).toEqual([4, Number.NaN, 7, -7]);
    const strict = encodeScaled(values, float8e5m2, { powerOfTwo: true, saturate: false });
    expect([...decodeScaled(strict)]).toEqual(values);
  });

  test.each(["nearestEven", "towardZero", "stochastic"] as const)(
    "by default only overflow of finite numbers saturates, rounded %s",
    (rounding) => {
      const options = { powerOfTwo: true, rounding, ...(rounding === "stochastic" && { seed: 1 }) };
      const back = (values: readonly number[], format: FloatFormat<Uint8Array>) => [
        ...decodeScaled(encodeScaled(values, format, options)),
      ];
      expect(back([1, -Infinity, -1, Infinity], float8e5m2)).toEqual([1, -Infinity, -1, Infinity]);
      expect(back([1, Infinity], float8e4m3fn)).toEqual([1, Number.NaN]);
      expect(back([6, -Infinity], float4e2m1fn)).toEqual([6, -6]);
    },
  );

  test("zeros and nothing at all", () => {
    expect([...decodeScaled(encodeScaled([0, -0], float16))]).toEqual([0, -0]);
    expect([...encodeScaled([], float16).codes]).toEqual([]);
    expect(encodeScaled([], float16, { columns: 5 }).scales).toHaveLength(0);
  });

  test("more elements than a chunk; the rounding is passed on", () => {
    const values = Float64Array.from({ length: 40_000 }, (_, i) => Math.sin(i));
    for (const rounding of ["nearestEven", "up"] as const) {
      const { codes, scales } = encodeScaled(values, bfloat16, { rounding });
      const scale = scales[0] as number;
      const wrong = values.findIndex(
        (value, i) => codes[i] !== bfloat16.encode(value / scale, { rounding, saturate: true }),
      );
      expect(wrong).toBe(-1);
    }
  });

  test("stochastic rounding numbers its random words by element of the whole array", () => {
    const values = Float64Array.from({ length: 40_000 }, (_, i) => Math.cos(i));
    const options = { rounding: "stochastic", seed: 7, offset: 3 } as const;
    const { codes, scales } = encodeScaled(values, float8e5m2, options);
    const quotients = values.map((value) => value / (scales[0] as number));
    const expected = encodeArray(quotients, float8e5m2, undefined, { ...options, saturate: true });
    expect(codes.findIndex((code, i) => code !== expected[i])).toBe(-1);
  });

  test("arrays of 64-bit integers are refused", () => {
    const values = BigInt64Array.of(1n) as unknown as number[];
    expect(() => encodeScaled(values, float16)).toThrow("encodeScaled: values are a BigInt64Array");
  });

  test("rows and scales must fit", () => {
    expect(() => encodeScaled([1, 2, 3], float16, { columns: 2 })).toThrow(
      "encodeScaled: 3 elements are no rows of 2: pass columns that divide them",
    );
    expect(() => encodeScaled([1], float16, { columns: 0 })).toThrow(RangeError);
    const scaled = encodeScaled([1, 2], float16, { columns: 1 });
    expect(() => decodeScaled({ ...scaled, scales: new Float32Array(3) })).toThrow(
      "decodeScaled: 2 rows need as many scales, not 3",
    );
  });

  test("decoding writes where it is told", () => {
    const out = new Float32Array(3);
    expect(decodeScaled(encodeScaled([8, 16], float8e4m3fn), out)).toBe(out);
    expect([...out]).toEqual([8, 16, 0]);
  });
});
