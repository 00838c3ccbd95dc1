import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { bfloat16, type FloatFormat, float16, formatOf, type Rounding } from "./index.js";

const formats = [float16, bfloat16] as const;
const roundings: readonly Exclude<Rounding, "stochastic">[] = [
  "nearestEven",
  "nearestAway",
  "towardZero",
  "down",
  "up",
  "odd",
];

const word = new DataView(new ArrayBuffer(8));

function float32OfBits(bits: number): number {
  word.setUint32(0, bits);
  return word.getFloat32(0);
}

/** The next float64 away from zero (+1) or toward it (−1). */
function step(value: number, by: 1n | -1n): number {
  word.setFloat64(0, value);
  word.setBigUint64(0, word.getBigUint64(0) + by);
  return word.getFloat64(0);
}

/** What a code stands for, from float32's own decoding in the engine: bfloat16 is its upper half, float16 is rebiased. */
function decodeByFloat32(format: FloatFormat, code: number): number {
  if (format === bfloat16) return float32OfBits((code << 16) >>> 0);
  const sign = code & 0x8000 ? -1 : 1;
  const magnitude = code & 0x7fff;
  if (magnitude < 0x400) return sign * magnitude * 2 ** -24;
  if (magnitude >= 0x7c00) return magnitude === 0x7c00 ? sign * Infinity : Number.NaN;
  return sign * float32OfBits(((magnitude << 13) + (112 << 23)) >>> 0);
}

const infinityOf = (format: FloatFormat) => (format === float16 ? 0x7c00 : 0x7f80);

/** Codes of the finite non-negative numbers and their values, in order. */
const table = (format: FloatFormat): number[] =>
  Array.from({ length: infinityOf(format) }, (_, code) => decodeByFloat32(format, code));

/** An encoder that knows nothing of exponents: it searches the ordered table and compares exact distances. */
function encodeBySearch(
  format: FloatFormat,
  values: number[],
  x: number,
  rounding: Exclude<Rounding, "stochastic">,
) {
  const negative = x < 0 || Object.is(x, -0);
  const sign = negative ? 0x8000 : 0;
  const infinity = infinityOf(format);
  const a = Math.abs(x);
  if (a === Infinity) return sign + infinity;
  let low = 0;
  let high = infinity;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if ((values[middle] as number) <= a) low = middle;
    else high = middle;
  }
  const below = values[low] as number;
  // Rounding overflows as if the number after the largest existed.
  const above = values[low + 1] ?? 2 * below - (values[low - 1] as number);
  if (a === below) return sign + low;
  const closer = above - a < a - below ? 1 : above - a > a - below ? -1 : 0;
  const isBeyond = a >= above;
  const overflowed = low === infinity - 1;
  const odd = low % 2 === 1;
  const up = {
    nearestEven: isBeyond || closer === 1 || (closer === 0 && odd),
    nearestAway: isBeyond || closer >= 0,
    towardZero: false,
    down: negative,
    up: !negative,
    odd: !odd && !overflowed,
  }[rounding];
  return sign + low + (up ? 1 : 0);
}

const finite = fc.double({ noNaN: true, noDefaultInfinity: true });
const nearFormat = fc
  .tuple(fc.integer({ min: -40, max: 20 }), fc.double({ min: -2, max: 2, noNaN: true }))
  .map(([exponent, significand]) => significand * 2 ** exponent);
const anyNumber = fc.oneof(finite, nearFormat, fc.constantFrom(0, -0, Infinity, -Infinity));

describe.each(formats)("$name", (format) => {
  const values = table(format);
  const infinity = infinityOf(format);

  test("decodes all 65,536 codes as float32 arithmetic does", () => {
    const mismatches: number[] = [];
    for (let code = 0; code < 65536; code++) {
      if (!Object.is(format.decode(code), decodeByFloat32(format, code))) mismatches.push(code);
    }
    expect(mismatches).toEqual([]);
  });

  test.each(roundings)("every number survives its code (%s)", (rounding) => {
    const mismatches: number[] = [];
    for (let code = 0; code < 65536; code++) {
      const codesNaN = (code & 0x7fff) > infinity;
      const expected = codesNaN ? format.encode(Number.NaN) : code;
      if (format.encode(format.decode(code), { rounding }) !== expected) mismatches.push(code);
    }
    expect(mismatches).toEqual([]);
  });

  test("between all neighbours: tie, one float64 below it and one above, every rounding, both signs", () => {
    const mismatches: string[] = [];
    for (let code = 0; code < infinity; code++) {
      const above = values[code + 1] ?? 2 ** (format === float16 ? 16 : 128);
      const tie = ((values[code] as number) + above) / 2;
      const even = code + (code % 2);
      const cap = Math.min(code + 1, infinity - 1);
      // [below the tie, the tie, above the tie]
      const expected = {
        nearestEven: [code, even, code + 1],
        nearestAway: [code, code + 1, code + 1],
        towardZero: [code, code, code],
        up: [code + 1, code + 1, code + 1],
        down: [code, code, code],
        odd: code % 2 ? [code, code, code] : [cap, cap, cap],
      };
      const points = [step(tie, -1n), tie, step(tie, 1n)];
      for (const rounding of roundings) {
        const mirrored = rounding === "up" ? "down" : rounding === "down" ? "up" : rounding;
        points.forEach((x, i) => {
          const want = expected[rounding][i] as number;
          if (format.encode(x, { rounding }) !== want) mismatches.push(`${rounding} ${x}`);
          const negative = format.encode(-x, { rounding: mirrored });
          if (negative !== want + 0x8000) mismatches.push(`${mirrored} ${-x}`);
        });
      }
    }
    expect(mismatches).toEqual([]);
  });

  test("agrees with a search of the table on any float64", () => {
    fc.assert(
      fc.property(anyNumber, fc.constantFrom(...roundings), (x, rounding) => {
        expect(format.encode(x, { rounding })).toBe(encodeBySearch(format, values, x, rounding));
      }),
      { numRuns: 5000 },
    );
  });

  test("is monotone, sign symmetric and idempotent, and brackets every number", () => {
    fc.assert(
      fc.property(anyNumber, anyNumber, (x, y) => {
        const [low, high] = x <= y ? [x, y] : [y, x];
        expect(format.round(low)).toBeLessThanOrEqual(format.round(high));
        const rounded = format.round(x);
        expect(format.round(-x)).toBe(-rounded);
        expect(format.round(rounded)).toBe(rounded);
        const down = format.round(x, { rounding: "down" });
        const up = format.round(x, { rounding: "up" });
        expect(down <= x && x <= up).toBe(true);
        expect(Object.is(rounded, down) || Object.is(rounded, up)).toBe(true);
      }),
      { numRuns: 2000 },
    );
  });

  test("scaling by a power of two commutes away from the edges", () => {
    fc.assert(
      fc.property(
        fc.double({ min: 1, max: 2, noNaN: true }),
        fc.integer({ min: -13, max: 14 }),
        (x, exponent) => {
          expect(format.round(x * 2 ** exponent)).toBe(format.round(x) * 2 ** exponent);
        },
      ),
    );
  });

  test("saturation stops at the largest number, infinities too, and leaves NaN", () => {
    const { max } = format.finfo;
    const saturated = [1e300, -1e300, Infinity, -Infinity, 1.5].map((x) =>
      format.round(x, { saturate: true }),
    );
    expect(saturated).toEqual([max, -max, max, -max, 1.5]);
    expect(format.round(Number.NaN, { saturate: true })).toBeNaN();
    expect(format.round(1e300)).toBe(Infinity);
    expect(format.round(Infinity, { rounding: "towardZero" })).toBe(Infinity);
  });

  test("refuses what is no code, no number and no rounding", () => {
    for (const code of [-1, 65536, 1.5, Number.NaN]) {
      expect(() => format.decode(code)).toThrow(RangeError);
    }
    expect(() => format.encode(1n as unknown as number)).toThrow(/takes numbers, not bigint/);
    expect(() => format.encode("1" as unknown as number)).toThrow(TypeError);
    expect(() => format.encode(1, { rounding: "nearest" as Rounding })).toThrow(
      /unknown rounding "nearest": use nearestEven/,
    );
  });

  test("is found by its name", () => {
    expect(formatOf(format.name)).toBe(format);
  });
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

test("definitions and limits are those of numpy and torch", () => {
  expect(float16.finfo).toEqual({
    bits: 16,
    eps: 0.0009765625,
    max: 65504,
    min: -65504,
    smallestNormal: 2 ** -14,
    tiny: 2 ** -14,
    smallestSubnormal: 2 ** -24,
    decimalDigits: 3,
    resolution: 0.001,
  });
  expect(bfloat16.finfo).toEqual({
    bits: 16,
    eps: 0.0078125,
    max: 3.3895313892515355e38,
    min: -3.3895313892515355e38,
    smallestNormal: 1.1754943508222875e-38,
    tiny: 1.1754943508222875e-38,
    smallestSubnormal: 9.183549615799121e-41,
    decimalDigits: 2,
    resolution: 0.01,
  });
  expect(float16).toMatchObject({ exponentBits: 5, mantissaBits: 10, bias: 15, hasInfinity: true });
  expect(bfloat16).toMatchObject({ exponentBits: 8, mantissaBits: 7, bias: 127 });
});

test("formatOf names the formats it knows", () => {
  expect(() => formatOf("half" as "float16")).toThrow(
    'unknown number format "half": use float16, bfloat16',
  );
});
