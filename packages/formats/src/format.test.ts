import { describe, expect, test, vi } from "vitest";
import { allFormats, roundings, step } from "../test/samples.js";
import * as index from "./index.js";
import {
  bfloat16,
  type EncodeOptions,
  float4e2m1fn,
  float6e2m3fn,
  float6e3m2fn,
  float8e3m4,
  float8e4m3,
  float8e4m3b11fnuz,
  float8e4m3fn,
  float8e4m3fnuz,
  float8e5m2,
  float8e5m2fnuz,
  float8e8m0fnu,
  float16,
  float32,
  formatOf,
  tfloat32,
} from "./index.js";

// Sweeps take their time where other runs share the processor.
vi.setConfig({ testTimeout: 300_000 });

const word = new DataView(new ArrayBuffer(4));

function float32OfBits(bits: number): number {
  word.setUint32(0, bits);
  return word.getFloat32(0);
}

test.each([
  { format: bfloat16, shift: 16 },
  { format: tfloat32, shift: 13 },
])("$format.name decodes each of its codes as the upper bits of a float32", ({ format, shift }) => {
  const mismatches: number[] = [];
  for (let code = 0; code < 2 ** format.bits; code++) {
    const value = float32OfBits((code << shift) >>> 0);
    if (!Object.is(format.decode(code), value)) mismatches.push(code);
  }
  expect(mismatches).toEqual([]);
});

test("float16's hazards", () => {
  const cases: [number, number][] = [
    [65504, 0x7bff],
    [65519.99, 0x7bff],
    [step(65520, -1n), 0x7bff],
    [65520, 0x7c00],
    [-65520, 0xfc00],
    [2 ** -14, 0x0400],
    [2 ** -24, 0x0001],
    [5.96e-8, 0x0001],
    [2 ** -25, 0x0000],
    [step(2 ** -25, 1n), 0x0001],
    [-(2 ** -26), 0x8000],
    [1 + 2 ** -11, 0x3c00],
    // Through float32 this would first become 1 + 2^-11, a tie, and then 1.
    [1 + 2 ** -11 + 2 ** -40, 0x3c01],
    [1 + 3 * 2 ** -11, 0x3c02],
    [0.1, 0x2e66],
    [0, 0],
    [-0, 0x8000],
    [Infinity, 0x7c00],
    [-Infinity, 0xfc00],
    [Number.NaN, 0x7e00],
    [5e-324, 0],
    [1.7976931348623157e308, 0x7c00],
  ];
  expect(cases.map(([x]) => [x, float16.encode(x)])).toEqual(cases);
});

test("bfloat16's hazards", () => {
  const cases: [number, number][] = [
    [1 + 2 ** -8, 0x3f80],
    [1 + 2 ** -8 + 2 ** -40, 0x3f81],
    [3.3895313892515355e38, 0x7f7f],
    [step(2 ** 128 - 2 ** 119, -1n), 0x7f7f],
    [2 ** 128 - 2 ** 119, 0x7f80],
    [2 ** -133, 0x0001],
    [2 ** -134, 0x0000],
    [step(2 ** -134, 1n), 0x0001],
    [-0, 0x8000],
    [Number.NaN, 0x7fc0],
  ];
  expect(cases.map(([x]) => [x, bfloat16.encode(x)])).toEqual(cases);
});

test("stored limits are those of numpy and ml_dtypes", () => {
  const limits = allFormats.map(({ name, finfo: f }) => [
    name,
    ...[f.bits, f.eps, f.max, f.min, f.smallestNormal, f.smallestSubnormal, f.decimalDigits],
  ]);
  expect(limits).toEqual([
    [
      "float32",
      32,
      2 ** -23,
      3.4028234663852886e38,
      -3.4028234663852886e38,
      2 ** -126,
      2 ** -149,
      6,
    ],
    [
      "tfloat32",
      19,
      2 ** -10,
      3.4011621342146535e38,
      -3.4011621342146535e38,
      2 ** -126,
      2 ** -136,
      3,
    ],
    ["float16", 16, 2 ** -10, 65504, -65504, 2 ** -14, 2 ** -24, 3],
    [
      "bfloat16",
      16,
      2 ** -7,
      3.3895313892515355e38,
      -3.3895313892515355e38,
      2 ** -126,
      2 ** -133,
      2,
    ],
    ["float8e4m3fn", 8, 0.125, 448, -448, 0.015625, 0.001953125, 0],
    ["float8e5m2", 8, 0.25, 57344, -57344, 6.103515625e-5, 1.52587890625e-5, 0],
    ["float8e4m3fnuz", 8, 0.125, 240, -240, 0.0078125, 0.0009765625, 0],
    ["float8e5m2fnuz", 8, 0.25, 57344, -57344, 3.0517578125e-5, 7.62939453125e-6, 0],
    ["float8e4m3b11fnuz", 8, 0.125, 30, -30, 0.0009765625, 0.0001220703125, 0],
    ["float8e4m3", 8, 0.125, 240, -240, 0.015625, 0.001953125, 0],
    ["float8e3m4", 8, 0.0625, 15.5, -15.5, 0.25, 0.015625, 1],
    ["float8e8m0fnu", 8, 1, 2 ** 127, 2 ** -127, 2 ** -127, 2 ** -127, 0],
    ["float6e2m3fn", 6, 0.125, 7.5, -7.5, 1, 0.125, 0],
    ["float6e3m2fn", 6, 0.25, 28, -28, 0.25, 0.0625, 0],
    ["float4e2m1fn", 4, 0.5, 6, -6, 1, 0.5, 0],
  ]);
  for (const { finfo } of allFormats) {
    expect(finfo.tiny).toBe(finfo.smallestNormal);
    expect(finfo.resolution).toBe(Number(`1e-${finfo.decimalDigits}`));
  }
});

test("every exported format is in the tests' list", () => {
  const exported = Object.values(index).filter(
    (member) => typeof member === "object" && "decode" in member,
  );
  expect(new Set(exported)).toEqual(new Set(allFormats));
  expect(allFormats.length).toBe(15);
});

test("definitions are consistent with the codes", () => {
  for (const format of allFormats) {
    const { bits, exponentBits, mantissaBits, isSigned } = format;
    expect(exponentBits + mantissaBits + (isSigned ? 1 : 0)).toBe(bits);
    expect(format.decode(format.encode(Infinity)) === Infinity).toBe(format.hasInfinity);
    expect(format.hasZero ? format.decode(0) : 0).toBe(0);
    const codes = format.createCodes(3);
    expect(codes.length).toBe(3);
    expect(codes.BYTES_PER_ELEMENT).toBe(bits <= 8 ? 1 : bits <= 16 ? 2 : 4);
  }
});

describe("overflow", () => {
  const kinds = [
    { format: float16, infinity: 0x7c00, negative: 0xfc00 },
    { format: bfloat16, infinity: 0x7f80, negative: 0xff80 },
    { format: tfloat32, infinity: 0x3fc00, negative: 0x7fc00 },
    { format: float32, infinity: 0x7f800000, negative: 0xff800000 },
    { format: float8e5m2, infinity: 0x7c, negative: 0xfc },
    { format: float8e4m3, infinity: 0x78, negative: 0xf8 },
    { format: float8e3m4, infinity: 0x70, negative: 0xf0 },
    // No infinity: NaN, which keeps the sign where it has one.
    { format: float8e4m3fn, infinity: 0x7f, negative: 0xff },
    { format: float8e4m3fnuz, infinity: 0x80, negative: 0x80 },
    { format: float8e5m2fnuz, infinity: 0x80, negative: 0x80 },
    { format: float8e4m3b11fnuz, infinity: 0x80, negative: 0x80 },
    { format: float8e8m0fnu, infinity: 0xff, negative: 0xff },
    // Neither: the largest number.
    { format: float6e2m3fn, infinity: 0x1f, negative: 0x3f },
    { format: float6e3m2fn, infinity: 0x1f, negative: 0x3f },
    { format: float4e2m1fn, infinity: 0x7, negative: 0xf },
  ];

  test.each(kinds)("of $format.name", ({ format, infinity, negative }) => {
    const { max } = format.finfo;
    for (const rounding of roundings) {
      expect(format.encode(Infinity, { rounding })).toBe(infinity);
      expect(format.encode(-Infinity, { rounding })).toBe(negative);
      const stops = rounding === "towardZero" || rounding === "odd";
      const largest = format.encode(max);
      expect(format.encode(1e300, { rounding })).toBe(
        stops || rounding === "down" ? largest : infinity,
      );
      const saturate = true;
      expect(format.round(1e300, { rounding, saturate })).toBe(max);
      expect(format.round(Infinity, { rounding, saturate })).toBe(max);
      if (!format.isSigned) continue;
      expect(format.round(-Infinity, { rounding, saturate })).toBe(-max);
      expect(format.encode(-1e300, { rounding })).toBe(
        stops || rounding === "up" ? format.encode(-max) : negative,
      );
    }
    expect(format.encode(1e300, { rounding: "stochastic", bits: 0 })).toBe(infinity);
  });

  test("at the middle between the largest number and its successor, were there one", () => {
    expect([464, 464.0001, 480].map((x) => float8e4m3fn.encode(x))).toEqual([0x7e, 0x7f, 0x7f]);
    expect([247.9999, 248].map((x) => float8e4m3fnuz.encode(x))).toEqual([0x7f, 0x80]);
    expect([61439.9, 61440].map((x) => float8e5m2.encode(x))).toEqual([0x7b, 0x7c]);
    expect([30.9999, 31].map((x) => float8e4m3b11fnuz.encode(x))).toEqual([0x7f, 0x80]);
    // Stochastic rounding overflows after it has rounded: at 464 for half of the random bits.
    const at464 = (bits: number) => float8e4m3fn.encode(464, { rounding: "stochastic", bits });
    expect([0, 0x7ffff, 0x80000, 0xfffff].map(at464)).toEqual([0x7e, 0x7e, 0x7f, 0x7f]);
  });
});

describe("where formats differ from IEEE 754", () => {
  test("NaN is the positive quiet one; formats without NaN refuse it, or saturate", () => {
    const nans = allFormats
      .filter((format) => format.nanEncoding !== "none")
      .map((format) => [format.name, format.encode(Number.NaN)]);
    expect(Object.fromEntries(nans)).toEqual({
      float16: 0x7e00,
      bfloat16: 0x7fc0,
      tfloat32: 0x3fe00,
      float32: 0x7fc00000,
      float8e4m3fn: 0x7f,
      float8e5m2: 0x7e,
      float8e4m3fnuz: 0x80,
      float8e5m2fnuz: 0x80,
      float8e4m3b11fnuz: 0x80,
      float8e4m3: 0x7c,
      float8e3m4: 0x78,
      float8e8m0fnu: 0xff,
    });
    for (const format of [float6e2m3fn, float6e3m2fn, float4e2m1fn]) {
      expect(() => format.encode(Number.NaN)).toThrow(
        new RangeError(
          `${format.name} has no NaN: replace it first, or pass saturate: true for the maximum`,
        ),
      );
      expect(format.round(Number.NaN, { saturate: true })).toBe(format.finfo.max);
    }
  });

  test("fnuz formats have no −0", () => {
    for (const format of [float8e4m3fnuz, float8e5m2fnuz, float8e4m3b11fnuz]) {
      expect([-0, -1e-30].map((x) => format.encode(x))).toEqual([0, 0]);
      expect(format.encode(-1e-30, { rounding: "down" })).toBe(0x81);
      expect(format.decode(0x80)).toBeNaN();
    }
  });

  test("float8e8m0fnu has neither sign nor zero, and its ties go up", () => {
    const encode = (x: number, options?: EncodeOptions) => float8e8m0fnu.encode(x, options);
    expect([0, -0, -1, -1e-300].map((x) => encode(x))).toEqual([255, 255, 255, 255]);
    const saturated = [0, -0, -1, Infinity].map((x) => encode(x, { saturate: true }));
    expect(saturated).toEqual([0, 0, 255, 254]);
    expect([1, 1.4999, 1.5, 3, 6].map((x) => encode(x))).toEqual([127, 127, 128, 129, 130]);
    for (const rounding of roundings) {
      expect([1e-300, 5e-324].map((x) => encode(x, { rounding }))).toEqual([0, 0]);
    }
    expect([1.4999, 1.5].map((x) => encode(x * 2 ** -127))).toEqual([0, 1]);
    expect(encode(2 ** 127 * 1.4999)).toBe(254);
    expect(encode(2 ** 127 * 1.5)).toBe(255);
  });
});

describe.each(allFormats)("hostile inputs of $name", (format) => {
  const numbers: unknown[] = [
    1n,
    "1",
    "",
    true,
    null,
    undefined,
    {},
    [1],
    Symbol("x"),
    new Date(0),
  ];

  test("what is no number is a TypeError", () => {
    for (const value of numbers as number[]) {
      expect(() => format.encode(value)).toThrow(
        `${format.name} takes numbers, not ${typeof value}: convert it with Number()`,
      );
      for (const method of ["round", "ulp", "nextUp", "nextDown", "classify"] as const) {
        expect(() => format[method](value)).toThrow(TypeError);
      }
    }
  });

  test("what is no code is a RangeError", () => {
    const codes = [-1, 2 ** format.bits, 1.5, Number.NaN, Infinity, -Infinity, 2 ** 60];
    for (const code of [...codes, ...numbers] as number[]) {
      expect(() => format.decode(code)).toThrow(RangeError);
    }
    expect(() => format.decode(-1)).toThrow(
      `-1 is no ${format.name} code: pass an integer from 0 to ${2 ** format.bits - 1}`,
    );
    expect(format.decode(-0)).toBe(format.decode(0));
  });

  test("unknown roundings and random bits at the wrong place are TypeErrors", () => {
    for (const rounding of ["nearest", "toString", 1, {}]) {
      expect(() => format.encode(1, { rounding } as EncodeOptions)).toThrow(/unknown rounding/);
    }
    for (const bits of [undefined, -1, 0.5, 2 ** 32, Number.NaN, "1", 1n, null]) {
      expect(() => format.encode(1, { rounding: "stochastic", bits } as EncodeOptions)).toThrow(
        TypeError,
      );
    }
    expect(() => format.encode(1, { rounding: "up", bits: 1 })).toThrow(
      'rounding "up" with bits 1: pass an integer from 0 to 2^32 − 1 with "stochastic", nothing with others',
    );
  });

  test("methods need no this", () => {
    const { encode, decode, round, nextUp, nextDown, finfo } = format;
    expect([decode(encode(finfo.max)), round(1), nextUp(nextDown(1))]).toEqual([finfo.max, 1, 1]);
  });

  test("is found by its name", () => {
    expect(formatOf(format.name)).toBe(format);
  });
});

test("formatOf names the formats it knows", () => {
  for (const name of ["half", "toString", "__proto__"]) {
    expect(() => formatOf(name as "float16")).toThrow(
      `unknown number format "${name}": use float16, bfloat16, tfloat32, float32, float64, float8`,
    );
  }
});
