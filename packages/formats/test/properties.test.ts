import fc from "fast-check";
import { describe, expect, test, vi } from "vitest";
import {
  type EncodeOptions,
  type FloatFormat,
  float32,
  float64,
  type Rounding,
} from "../src/index.js";
import { philox4x32 } from "../src/philox.js";
import { finiteCodes, largestCode, roundings, step, testedFormats } from "./samples.js";

// Sweeps take their time where other runs share the processor.
vi.setConfig({ testTimeout: 300_000 });

const numRuns = 400;

/** Numbers to round: of the format, between them, a float64 off both, anywhere in and around the range, and any finite float64. */
function numbersFor(format: FloatFormat): fc.Arbitrary<number> {
  const { max, smallestSubnormal } = format.finfo;
  const magnitudes = fc
    .tuple(fc.integer({ min: 0, max: largestCode(format) }), fc.constantFrom(0, 0.5, 0.25, 0.9))
    .map(([code, part]) => format.decode(code) + part * format.ulp(format.decode(code)));
  const scaled = fc
    .tuple(
      fc.integer({ min: Math.log2(smallestSubnormal) - 2, max: Math.floor(Math.log2(max)) + 1 }),
      fc.double({ min: 1, max: 2, noNaN: true }),
    )
    .map(([exponent, significand]) => significand * 2 ** exponent);
  const positive = fc.oneof(
    magnitudes,
    magnitudes.map((x) => (x > 0 ? step(x, 1n) : x)),
    magnitudes.map((x) => (x > 0 ? step(x, -1n) : x)),
    scaled,
    fc.double({ min: 0, noNaN: true, noDefaultInfinity: true }),
  );
  const signed = fc.tuple(positive, fc.boolean()).map(([x, negative]) => (negative ? -x : x));
  // A format without sign and zero makes NaN of all but positive numbers; its own tests say so.
  return format.isSigned ? signed : positive.filter((x) => x > 0);
}

/** Any rounding, with random bits where it needs them. */
const anyRounding: fc.Arbitrary<EncodeOptions> = fc.oneof(
  fc.constantFrom(...roundings).map((rounding) => ({ rounding })),
  fc
    .integer({ min: 0, max: 2 ** 32 - 1 })
    .map((bits) => ({ rounding: "stochastic" as const, bits })),
);

const mirrored = (rounding: Rounding): Rounding =>
  rounding === "up" ? "down" : rounding === "down" ? "up" : rounding;

/** Overflow as a point beyond all numbers, also where the format says NaN. */
const ordered = (rounded: number, value: number): number =>
  Number.isNaN(rounded) ? Math.sign(value) * Infinity : rounded;

const isInRange = ({ finfo }: FloatFormat, value: number): boolean =>
  value <= finfo.max && (value >= finfo.min || (finfo.min < 0 && value === 0));

describe.each(testedFormats)("$name", (format) => {
  const { finfo, isSigned } = format;
  const numbers = numbersFor(format);

  test("between all neighbours: a float64 below the middle, the middle, one above; every rounding, both signs", () => {
    const mismatches: string[] = [];
    const last = largestCode(format);
    const beyond = format.encode(Infinity);
    const negate = (code: number) =>
      format.nanEncoding === "negativeZero" && (code === 0 || code === beyond)
        ? code
        : code + 2 ** (format.bits - 1);
    for (const code of finiteCodes(format)) {
      const low = format.decode(code);
      const middle = low + format.ulp(low) / 2;
      const high = code === last ? beyond : code + 1;
      const cap = code === last ? last : code + 1;
      const isOdd = format.mantissaBits === 0 || code % 2 === 1;
      const expected = {
        nearestEven: [code, isOdd ? high : code, high],
        nearestAway: [code, high, high],
        towardZero: [code, code, code],
        up: [high, high, high],
        down: [code, code, code],
        odd: isOdd ? [code, code, code] : [cap, cap, cap],
      };
      const points = [step(middle, -1n), middle, step(middle, 1n)];
      for (const rounding of roundings) {
        points.forEach((x, i) => {
          const want = expected[rounding][i] as number;
          if (format.encode(x, { rounding }) !== want) mismatches.push(`${rounding} ${x}`);
          if (!isSigned) return;
          const negative = format.encode(-x, { rounding: mirrored(rounding) });
          if (negative !== negate(want)) mismatches.push(`${mirrored(rounding)} ${-x}`);
        });
      }
    }
    expect(mismatches.slice(0, 20)).toEqual([]);
  });

  test("every number survives its code, whatever the rounding", () => {
    const mismatches: string[] = [];
    const options = roundings.flatMap((rounding) => [{ rounding }, { rounding, saturate: true }]);
    for (const magnitude of finiteCodes(format)) {
      for (const code of isSigned ? [magnitude, magnitude + 2 ** (format.bits - 1)] : [magnitude]) {
        const value = format.decode(code);
        if (Number.isNaN(value)) continue;
        for (const option of [...options, { rounding: "stochastic" as const, bits: 2 ** 32 - 1 }]) {
          if (format.encode(value, option) !== code) mismatches.push(`${option.rounding} ${code}`);
        }
      }
    }
    expect(mismatches.slice(0, 20)).toEqual([]);
  });

  test("rounding is monotone", () => {
    fc.assert(
      fc.property(numbers, numbers, fc.constantFrom(...roundings), (x, y, rounding) => {
        const [low, high] = x <= y ? [x, y] : [y, x];
        const roundedLow = ordered(format.round(low, { rounding }), low);
        expect(roundedLow).toBeLessThanOrEqual(ordered(format.round(high, { rounding }), high));
      }),
      { numRuns },
    );
  });

  if (isSigned) {
    test("rounding is symmetric in the sign", () => {
      fc.assert(
        fc.property(numbers, anyRounding, (x, options) => {
          const rounding = mirrored(options.rounding as Rounding);
          // Some formats have no −0.
          const negated = format.round(-x, { ...options, rounding }) + 0;
          expect(negated).toBe(-format.round(x, options) + 0);
        }),
        { numRuns },
      );
    });
  }

  test("rounding a rounded number changes nothing", () => {
    fc.assert(
      fc.property(numbers, anyRounding, anyRounding, (x, first, second) => {
        const rounded = format.round(x, first);
        if (Number.isNaN(rounded)) return;
        expect(format.round(rounded, second)).toBe(rounded);
      }),
      { numRuns },
    );
  });

  test("down ≤ x ≤ up, and the nearest is one of them and not the farther one", () => {
    fc.assert(
      fc.property(numbers, fc.constantFrom("nearestEven", "nearestAway"), (x, rounding) => {
        if (!isInRange(format, x)) return;
        const down = format.round(x, { rounding: "down" });
        const up = format.round(x, { rounding: "up" });
        expect(down <= x && x <= up).toBe(true);
        const nearest = format.round(x, { rounding });
        expect([down, up]).toContain(nearest);
        const farther = nearest === down ? up : down;
        expect(Math.abs(nearest - x)).toBeLessThanOrEqual(Math.abs(farther - x));
        expect([down, up]).toContain(format.round(x, { rounding: "odd" }));
        const towardZero = format.round(x, { rounding: "towardZero" });
        expect(towardZero).toBe(x > 0 || Object.is(x, 0) ? down : up);
      }),
      { numRuns },
    );
  });

  test("saturation is a clamp", () => {
    fc.assert(
      fc.property(numbers, anyRounding, (x, options) => {
        const clamped = Math.min(Math.max(x, finfo.min), finfo.max);
        expect(format.round(x, { ...options, saturate: true })).toBe(
          format.round(clamped, options),
        );
      }),
      { numRuns },
    );
  });

  test("scaling by a power of two commutes away from the edges", () => {
    const lowest = Math.log2(finfo.smallestNormal);
    const highest = Math.floor(Math.log2(finfo.max)) - 1;
    const exponents = fc.integer({ min: lowest, max: highest });
    fc.assert(
      fc.property(
        fc.double({ min: 1, max: 1.99, noNaN: true }),
        exponents,
        exponents,
        anyRounding,
        (significand, from, to, options) => {
          const x = significand * 2 ** from;
          const scale = 2 ** (to - from);
          // The threshold of stochastic rounding counts float32's bits, which get fewer below its smallest normal number.
          if (options.rounding === "stochastic" && Math.min(from, to) < -126) return;
          expect(format.round(x * scale, options)).toBe(format.round(x, options) * scale);
        },
      ),
      { numRuns },
    );
  });

  test("stochastic rounding yields the two neighbours: the nearer to zero without random bits, the other with all", () => {
    const bits = fc.integer({ min: 0, max: 2 ** 32 - 1 });
    fc.assert(
      fc.property(numbers, bits, (x, random) => {
        if (!isInRange(format, x)) return;
        const near = format.round(x, { rounding: "towardZero" });
        const far = format.round(x, { rounding: x > 0 ? "up" : "down" });
        const at = (word: number) => format.round(x, { rounding: "stochastic", bits: word });
        expect([near, far]).toContain(at(random));
        expect(at(0)).toBe(near);
        const most = at(2 ** 32 - 1);
        // Fractions below what the bits resolve never round up; the fewest bits that count are tfloat32's 13.
        if (Math.abs(x - near) * 2 ** 13 >= Math.abs(far - near)) expect(most).toBe(far);
      }),
      { numRuns },
    );
  });

  test("the mean of stochastic rounding is the number, within 5σ", () => {
    const parts = [1 / 8, 0.3, 0.5, 0.77, 1023 / 1024];
    const codes = [0, 1, 2 ** format.mantissaBits, Math.floor(largestCode(format) / 2)];
    const mismatches: string[] = [];
    const words = Array.from({ length: 2500 }, (_, i) => philox4x32([i, 0, 0, 0], [7, 11])).flat();
    for (const code of new Set(codes)) {
      const low = format.decode(code);
      for (const part of parts) {
        const x = low + part * format.ulp(low);
        const ups = words.filter(
          (bits) => format.encode(x, { rounding: "stochastic", bits }) !== code,
        ).length;
        const sigma = Math.sqrt(words.length * part * (1 - part));
        if (Math.abs(ups - words.length * part) > 5 * sigma) mismatches.push(`${x}: ${ups}`);
      }
    }
    expect(mismatches).toEqual([]);
  });
});

test.each(testedFormats.filter((format) => format !== float32))(
  "what was rounded to odd in float32 errs once when it is then rounded to $name",
  (format) => {
    fc.assert(
      fc.property(numbersFor(format), (x) => {
        const odd = float32.round(x, { rounding: "odd" });
        expect(format.round(odd)).toBe(format.round(x));
      }),
      { numRuns },
    );
  },
);

test("float32 rounds as Math.fround", () => {
  const view = new DataView(new ArrayBuffer(4));
  fc.assert(
    fc.property(numbersFor(float32), (x) => {
      expect(float32.round(x)).toBe(Math.fround(x));
      view.setFloat32(0, x);
      expect(float32.encode(x)).toBe(view.getUint32(0));
      expect(float32.decode(view.getUint32(0))).toBe(view.getFloat32(0));
    }),
    { numRuns: 5000 },
  );
});

test("float64 has every number", () => {
  fc.assert(
    fc.property(fc.double(), anyRounding, (x, options) => {
      expect(float64.round(x, options)).toBe(x);
    }),
  );
  expect(float64.round(-Infinity, { saturate: true })).toBe(-Number.MAX_VALUE);
});
