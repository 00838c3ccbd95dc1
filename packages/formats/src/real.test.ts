import fc from "fast-check";
import { describe, expect, test, vi } from "vitest";
import { finiteCodes, step, testedFormats } from "../test/samples.js";
import {
  bfloat16,
  float4e2m1fn,
  float8e4m3fn,
  float8e4m3fnuz,
  float8e8m0fnu,
  float16,
  float64,
} from "./index.js";

// Sweeps take their time where other runs share the processor.
vi.setConfig({ testTimeout: 300_000 });

describe.each(testedFormats)("$name", (format) => {
  const { finfo } = format;
  const codes = finiteCodes(format);
  // Neighbours in this list are neighbours of the format where their codes are.
  const values = codes.map((code) => format.decode(code));

  test("nextUp and nextDown of every number are the neighbouring codes, and ulp is their distance", () => {
    const mismatches: string[] = [];
    codes.forEach((code, i) => {
      if (codes[i + 1] !== code + 1) return;
      const [low, high] = [values[i] as number, values[i + 1] as number];
      if (format.nextUp(low) !== high) mismatches.push(`nextUp(${low})`);
      if (format.nextDown(high) !== low) mismatches.push(`nextDown(${high})`);
      if (format.ulp(low) !== high - low) mismatches.push(`ulp(${low})`);
      if (!format.isSigned) return;
      if (format.nextUp(-high) !== -low) mismatches.push(`nextUp(${-high})`);
      if (format.nextDown(-low) !== -high) mismatches.push(`nextDown(${-low})`);
      if (format.ulp(-low) !== high - low) mismatches.push(`ulp(${-low})`);
    });
    expect(mismatches.slice(0, 20)).toEqual([]);
  });

  test("of numbers that lie between, the neighbours are those around", () => {
    const mismatches: string[] = [];
    codes.forEach((code, i) => {
      if (codes[i + 1] !== code + 1) return;
      const [low, high] = [values[i] as number, values[i + 1] as number];
      for (const x of [step(high, -1n), low + (high - low) / 2]) {
        if (format.nextUp(x) !== high || format.nextDown(x) !== low) mismatches.push(String(x));
      }
    });
    expect(mismatches.slice(0, 20)).toEqual([]);
  });

  test("beyond the ends", () => {
    const { max, min } = finfo;
    expect(format.nextUp(-Infinity)).toBe(min);
    expect(format.nextUp(min - 1e300)).toBe(min);
    expect(format.nextDown(Infinity)).toBe(max);
    expect(format.nextDown(max + 1e300)).toBe(max);
    for (const x of [max, max + 1e300, Infinity])
      expect(format.nextUp(x)).toBe(format.round(Infinity));
    for (const x of [min, min - 1e300, -Infinity]) {
      expect(format.nextDown(x)).toBe(format.round(-Infinity));
    }
    expect([format.nextUp(Number.NaN), format.nextDown(Number.NaN)]).toEqual([
      Number.NaN,
      Number.NaN,
    ]);
    expect([1e300, -1e300].map(format.ulp)).toEqual([format.ulp(max), format.ulp(max)]);
    expect([Infinity, -Infinity, Number.NaN].map(format.ulp)).toEqual([
      Infinity,
      Infinity,
      Number.NaN,
    ]);
    expect(format.ulp(0)).toBe(format.hasZero ? finfo.smallestSubnormal : 2 ** -127);
  });

  test("classify says what the exponent field says", () => {
    const mismatches: string[] = [];
    const total = 2 ** format.bits;
    const signBit = format.isSigned ? total / 2 : total;
    for (const magnitude of format.bits > 16 ? codes : Array(signBit).keys()) {
      for (const code of format.isSigned ? [magnitude, magnitude + signBit] : [magnitude]) {
        const value = format.decode(code);
        const field = Math.floor(magnitude / 2 ** format.mantissaBits);
        const kind = Number.isNaN(value)
          ? "nan"
          : Math.abs(value) === Infinity
            ? "infinity"
            : field > 0 || !format.hasZero
              ? "normal"
              : magnitude > 0
                ? "subnormal"
                : "zero";
        const isNegative = code >= signBit && kind !== "nan";
        const found = format.classify(value);
        if (found.kind !== kind || found.isNegative !== isNegative) mismatches.push(`${code}`);
      }
    }
    expect(mismatches).toEqual([]);
    expect(format.classify(Number.NaN)).toEqual({ kind: "nan", isNegative: false });
  });
});

test("nextUp from the largest negative subnormal is −0, where there is one", () => {
  expect(float16.nextUp(-(2 ** -24))).toBe(-0);
  expect(float16.nextDown(2 ** -24)).toBe(0);
  expect(float8e4m3fnuz.nextUp(-(2 ** -10))).toBe(0);
  expect(float64.nextUp(-5e-324)).toBe(-0);
  expect(float64.nextDown(5e-324)).toBe(0);
});

test("a format's last neighbour is infinity, or NaN, or the largest number itself", () => {
  expect(float16.nextUp(65504)).toBe(Infinity);
  expect(float16.nextDown(-65504)).toBe(-Infinity);
  expect(float8e4m3fn.nextUp(448)).toBeNaN();
  expect(float4e2m1fn.nextUp(6)).toBe(6);
  expect(float8e8m0fnu.nextDown(2 ** -127)).toBeNaN();
  expect([0, -0, -1, 1e-300].map(float8e8m0fnu.nextUp)).toEqual(Array(4).fill(2 ** -127));
});

test("classify says what the format makes of a number", () => {
  const kinds = [1, 6e-5, 1e-9, -1e-9, -1e6].map(float16.classify);
  expect(kinds).toEqual([
    { kind: "normal", isNegative: false },
    { kind: "subnormal", isNegative: false },
    { kind: "zero", isNegative: false },
    { kind: "zero", isNegative: true },
    { kind: "infinity", isNegative: true },
  ]);
  expect(bfloat16.classify(1e-39).kind).toBe("subnormal");
  expect(float8e4m3fn.classify(1e6).kind).toBe("nan");
  expect(float8e8m0fnu.classify(0).kind).toBe("nan");
});

describe("float64", () => {
  const view = new DataView(new ArrayBuffer(8));
  /** The order of float64 numbers as integers, with −0 and 0 at 0. */
  const rankOf = (x: number): bigint => {
    view.setFloat64(0, x);
    const bits = view.getBigInt64(0);
    return bits < 0n ? -(bits & 0x7fffffffffffffffn) : bits;
  };
  const edges = [0, 5e-324, 2 ** -1022, 2 ** -1021, 1, 2, 2 ** 52, Number.MAX_VALUE];
  const anyFinite = fc.oneof(
    fc.double({ noNaN: true, noDefaultInfinity: true }),
    fc.constantFrom(
      ...edges.flatMap((x) => [x, -x, step(x, 1n), -step(x, 1n)]).filter(Number.isFinite),
    ),
    fc
      .tuple(fc.integer({ min: -1074, max: 1023 }), fc.constantFrom(1, -1))
      .map(([e, s]) => s * 2 ** e),
  );

  test("nextUp and nextDown are one bit pattern away", () => {
    fc.assert(
      fc.property(anyFinite, (x) => {
        expect(rankOf(float64.nextUp(x))).toBe(rankOf(x) + 1n);
        expect(rankOf(float64.nextDown(x))).toBe(rankOf(x) - 1n);
        expect(float64.ulp(x)).toBe(float64.ulp(-x));
        if (Math.abs(x) < Number.MAX_VALUE) {
          expect(float64.nextUp(Math.abs(x)) - Math.abs(x)).toBe(float64.ulp(x));
        }
      }),
      { numRuns: 5000 },
    );
    expect([Infinity, -Infinity].map(float64.nextUp)).toEqual([Infinity, -Number.MAX_VALUE]);
    expect([Infinity, -Infinity].map(float64.nextDown)).toEqual([Number.MAX_VALUE, -Infinity]);
    expect(float64.nextUp(Number.NaN)).toBeNaN();
  });

  test("limits are those of numpy", () => {
    expect(float64.finfo).toEqual({
      bits: 64,
      eps: 2 ** -52,
      max: 1.7976931348623157e308,
      min: -1.7976931348623157e308,
      smallestNormal: 2.2250738585072014e-308,
      tiny: 2.2250738585072014e-308,
      smallestSubnormal: 5e-324,
      decimalDigits: 15,
      resolution: 1e-15,
    });
    expect(float64.classify(-5e-324)).toEqual({ kind: "subnormal", isNegative: true });
    expect(float64.ulp(1)).toBe(Number.EPSILON);
  });

  test("refuses what is no number", () => {
    for (const method of ["round", "ulp", "nextUp", "nextDown", "classify"] as const) {
      for (const value of [1n, "1", undefined, null] as unknown[] as number[]) {
        expect(() => float64[method](value)).toThrow(TypeError);
      }
    }
    expect(() => float64.round(1, { rounding: "stochastic" })).toThrow(TypeError);
  });
});
