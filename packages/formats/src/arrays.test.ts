import { afterEach, describe, expect, test, vi } from "vitest";
import { roundings, testedFormats } from "../test/samples.js";
import { float32Words, isWithoutNaN, mismatches, numbersFor } from "../test/words.js";
import { encoderOf, encodeWords, roundWords } from "./arrays/encoder.js";
import * as formats from "./index.js";
import {
  bfloat16,
  bulkBackend,
  decodeArray,
  encodeArray,
  type FloatFormat,
  float4e2m1fn,
  float8e4m3fn,
  float16,
  type Numbers,
  type Rounding,
  roundArray,
} from "./index.js";
import { philox4x32 } from "./philox.js";

const wordsOf = (values: Float32Array): Uint32Array =>
  new Uint32Array(values.buffer, values.byteOffset, values.length);

/** Long arrays have the same elements. `toEqual` compares their keys as well, one by one. */
function expectSame(got: ArrayLike<number>, want: ArrayLike<number>): void {
  const differing = mismatches(want.length, (i) => Object.is(got[i], want[i]));
  expect([got.constructor, got.length, differing]).toEqual([want.constructor, want.length, []]);
}

/** All codes, or of float32 a sample. */
const codesOf = (format: FloatFormat) => {
  const codes = format.createCodes(2 ** Math.min(format.bits, 19));
  const stride = 2 ** (format.bits - Math.min(format.bits, 19)) + (format.bits > 19 ? 13 : 0);
  for (let i = 0; i < codes.length; i++) codes[i] = i * stride;
  return codes;
};

test("this engine has the kernels", () => {
  expect(bulkBackend()).toBe("webassembly");
});

const seed = 2 ** 40 + 12345;
const offset = 2 ** 33 + 7;
/** What stochastic rounding draws for each of many elements. All formats and inputs are given the same. */
const randomWords = new Uint32Array(2 ** 14);
for (let i = 0; i < randomWords.length; i += 4)
  randomWords.set(
    philox4x32(
      [i >>> 2, 0, offset >>> 0, Math.floor(offset / 2 ** 32)],
      [seed >>> 0, Math.floor(seed / 2 ** 32)],
    ),
    i,
  );

describe.each(testedFormats)("$name", (format) => {
  test.each([false, true])("encoding float32, saturate %s", (saturate) => {
    const values = numbersFor(format, float32Words());
    const codes = encodeArray(values, format, undefined, { saturate });
    const scalar = (i: number): number =>
      Number.isNaN(values[i])
        ? (codes[i] as number)
        : format.encode(values[i] as number, { saturate });
    // Every seventh, each lower half among them in turn.
    const isScalar = (i: number): boolean => i % 7 > 0 || codes[i] === scalar(i);
    expect(mismatches(values.length, isScalar)).toEqual([]);
    if (!format.hasZero) return;
    // The kernels and JavaScript agree on NaNs as well.
    const words = wordsOf(values);
    const plain = format.createCodes(words.length);
    const encoder = encoderOf(format, "nearestEven", saturate);
    encodeWords(words, words.length, encoder, plain, 0, words);
    expect(mismatches(plain.length, (i) => codes[i] === plain[i])).toEqual([]);
  });

  test("decoding equals the scalar one; a few codes equal many, NaN bits included", () => {
    const codes = codesOf(format);
    const values = decodeArray(codes, format);
    const numbers = mismatches(codes.length, (i) =>
      Object.is(values[i], format.decode(codes[i] as number)),
    );
    expect(numbers).toEqual([]);
    const words = wordsOf(values);
    const wrong: number[] = [];
    for (let from = 0; from < codes.length; from += 997) {
      const few = wordsOf(decodeArray(codes.subarray(from, from + 40), format));
      few.forEach((word, i) => {
        if (word !== words[from + i]) wrong.push(from + i);
      });
    }
    expect(wrong).toEqual([]);
  });

  test("every code that is no NaN comes back", () => {
    const codes = codesOf(format);
    const back = encodeArray(decodeArray(codes, format), format, undefined, {
      saturate: isWithoutNaN(format),
    });
    const isSame = (i: number): boolean =>
      back[i] === codes[i] || Number.isNaN(format.decode(codes[i] as number));
    expect(mismatches(codes.length, isSame)).toEqual([]);
  });

  test("rounding equals encode, then decode: kernels, JavaScript, a few, in place", () => {
    const values = numbersFor(format, float32Words(5));
    for (const saturate of [false, true]) {
      const options = { saturate };
      const want = wordsOf(decodeArray(encodeArray(values, format, undefined, options), format));
      const inPlace = values.slice();
      expect(roundArray(inPlace, format, inPlace, options)).toBe(inPlace);
      const results = [inPlace, roundArray(values, format, undefined, options)];
      if (!saturate) {
        const few = new Float32Array(values.length);
        for (let i = 0; i < values.length; i += 32) {
          few.set(roundArray(values.subarray(i, i + 32), format), i);
        }
        results.push(few);
      }
      if (format.hasZero) {
        const plain = values.slice();
        const words = wordsOf(plain);
        const encoder = encoderOf(format, "nearestEven", saturate);
        roundWords(words, words.length, encoder, words, new Uint32Array(words.length));
        results.push(plain);
      }
      for (const result of results) {
        const words = wordsOf(result);
        expect(mismatches(want.length, (i) => words[i] === want[i])).toEqual([]);
      }
    }
  });

  test("every rounding, from float32, float64 and plain arrays", () => {
    const singles = numbersFor(format, float32Words(127)).map((x) => (Number.isNaN(x) ? 1 : x));
    // Numbers around each float32 by less than half its last place.
    const doubles = Float64Array.from(singles, (x, i) => x * (1 + ((i % 5) - 2) * 2 ** -50));
    doubles.set([1e300, -1e300, 2 ** 128, -(2 ** 128) + 2 ** 76, 5e-324, -5e-324]);
    const inputs: Numbers[] = [singles, doubles, [...doubles.subarray(0, 3000)]];
    const all: Rounding[] = [...roundings, "stochastic"];
    const wrong: string[] = [];
    for (const rounding of all) {
      for (const saturate of [false, true]) {
        const options =
          rounding === "stochastic" ? { rounding, saturate, seed, offset } : { rounding, saturate };
        for (const input of inputs) {
          const values = input as ArrayLike<number>;
          const codes = encodeArray(values, format, undefined, options);
          const rounded = roundArray(values, format, new Float64Array(values.length), options);
          for (let i = 0; i < values.length; i++) {
            const scalar =
              rounding === "stochastic"
                ? { rounding, saturate, bits: randomWords[i] as number }
                : options;
            const want = format.encode(values[i] as number, scalar);
            if (codes[i] !== want || !Object.is(rounded[i], format.decode(want))) {
              wrong.push(`${rounding} ${saturate} ${values[i]}`);
            }
          }
        }
      }
    }
    expect(wrong).toEqual([]);
  });
});

test("stochastic rounding: the seed decides, the offset is another stream, few equal many", () => {
  const values = new Float32Array(9000).map((_, i) => 1 + (i % 97) * 2 ** -16);
  const options = { rounding: "stochastic", seed: 1 } as const;
  const codes = encodeArray(values, float16, undefined, options);
  expect(encodeArray(values, float16, undefined, options)).toEqual(codes);
  expect(encodeArray(values, float16, undefined, { ...options, offset: 1 })).not.toEqual(codes);
  expect(encodeArray(values.subarray(0, 100), float16, undefined, options)).toEqual(
    codes.subarray(0, 100),
  );
  const mean = decodeArray(codes, float16).reduce((sum, x) => sum + x, 0) / codes.length;
  const exact = values.reduce((sum, x) => sum + x, 0) / values.length;
  // Each element errs by at most one unit, 2⁻¹⁰: five standard deviations of the mean are 5 · 2⁻¹¹ / √9000.
  expect(Math.abs(mean - exact)).toBeLessThan((5 * 2 ** -11) / Math.sqrt(values.length));
});

describe("where the numbers lie", () => {
  const values = Float32Array.from(
    { length: 10_000 },
    (_, i) => Math.sin(i) * 2 ** ((i % 30) - 15),
  );
  const wanted = encodeArray(values, float16);

  test("views with an offset, longer outputs and empty arrays", () => {
    const source = Float32Array.of(9, 1, 2, 3).subarray(1);
    const out = new Uint16Array(5).subarray(1);
    expect(encodeArray(source, float16, out)).toBe(out);
    expect([...out]).toEqual([0x3c00, 0x4000, 0x4200, 0]);
    const back = new Float32Array(5).subarray(1);
    expect([...decodeArray(out.subarray(0, 3), float16, back)]).toEqual([1, 2, 3, 0]);
    expect(encodeArray([], float16)).toHaveLength(0);
    expect(decodeArray(new Uint16Array(), float16)).toHaveLength(0);
    expect(roundArray(new Float32Array(), float16)).toHaveLength(0);
  });

  test("a last piece of a few elements", () => {
    const doubles = Float64Array.from(values);
    for (const length of [4096 + 10, 2 * 4096 + 64, 4096]) {
      expectSame(encodeArray(values.subarray(0, length), float16), wanted.subarray(0, length));
      expectSame(encodeArray(doubles.subarray(0, length), float16), wanted.subarray(0, length));
      const decoded = decodeArray(wanted.subarray(0, length), float16);
      expectSame(decoded, Float32Array.from(wanted.subarray(0, length), float16.decode));
      expectSame(roundArray(values.subarray(0, length), float16), decoded);
    }
  });

  test("integers, array-likes, Buffers and arrays of codes are numbers too", () => {
    expect([...encodeArray(Int16Array.of(1, -2), float16)]).toEqual([0x3c00, 0xc000]);
    expect([...encodeArray({ length: 2, 0: 1, 1: 2 }, float16)]).toEqual([0x3c00, 0x4000]);
    expect([...decodeArray(Buffer.from([0x38, 0x40]), float8e4m3fn)]).toEqual([1, 2]);
    const half = formats.Float16Array.from(values);
    expectSame(encodeArray(half, float16), wanted);
    expect(encodeArray(half, float8e4m3fn)).toEqual(
      encodeArray(decodeArray(wanted, float16), float8e4m3fn),
    );
  });

  test("shared memory", () => {
    const shared = new Float32Array(new SharedArrayBuffer(4 * values.length));
    shared.set(values);
    const codes = new Uint16Array(new SharedArrayBuffer(2 * values.length));
    expectSame(encodeArray(shared, float16, codes), wanted);
    expectSame(decodeArray(codes, float16), decodeArray(wanted, float16));
  });

  test.each([10, 5000])("%i elements in place, and over each other in any way", (length) => {
    const part = values.subarray(0, length);
    const codes = wanted.slice(0, length);
    const decoded = decodeArray(codes, float16);
    for (const from of [0, 4, 8]) {
      for (const to of [0, 2, 4, 6, 8]) {
        const memory = new ArrayBuffer(4 * length + 16);
        const source = new Float32Array(memory, from, length);
        source.set(part);
        expectSame(encodeArray(source, float16, new Uint16Array(memory, to, length)), codes);
        if (to % 4 > 0) continue;
        source.set(part);
        expectSame(roundArray(source, float16, new Float32Array(memory, to, length)), decoded);
        const stored = new Uint16Array(memory, from, length);
        stored.set(codes);
        expectSame(decodeArray(stored, float16, new Float32Array(memory, to, length)), decoded);
      }
    }
    const doubles = new Float64Array(length + 1);
    doubles.set(part);
    const rounded = roundArray(doubles.subarray(0, length), float16, doubles.subarray(1));
    expectSame(rounded, Float64Array.from(decoded));
    const exact = new Float64Array(length + 1);
    exact.set(part);
    const { float8e8m0fnu } = formats;
    const powers = Float64Array.from(part, (x) => float8e8m0fnu.round(x));
    expectSame(roundArray(exact.subarray(0, length), float8e8m0fnu, exact.subarray(1)), powers);
  });
});

describe("what is refused", () => {
  const detached = new Float32Array(4);
  const detachedCodes = new Uint16Array(4);
  structuredClone(null, { transfer: [detached.buffer, detachedCodes.buffer] });
  const cases: [name: string, run: () => unknown, message: string][] = [
    [
      "BigInt arrays",
      () => encodeArray(BigInt64Array.of(1n) as never, float16),
      "encodeArray: values are a BigInt64Array, but formats hold numbers; convert them with Float64Array.from(values, Number)",
    ],
    [
      "BigInts",
      () => encodeArray([1, 2n] as never, float16),
      "element 1 is a bigint, not a number",
    ],
    ["strings in arrays", () => roundArray(["1"] as never, bfloat16), "element 0 is a string"],
    ["holes", () => encodeArray(new Array(3), float16), "element 0 is undefined"],
    [
      "strings for e8m0",
      () => encodeArray(["1"] as never, formats.float8e8m0fnu),
      "element 0 is a",
    ],
    ["strings", () => encodeArray("12" as never, float16), "values are a string"],
    ["null", () => encodeArray(null as never, float16), "values are null"],
    [
      "a format's name",
      () => encodeArray([1], "float16" as never),
      'encodeArray: "float16" is no format with codes; pass one such as float16, or formatOf(name)',
    ],
    [
      "float64, short",
      () => roundArray(Float32Array.of(1), formats.float64 as never),
      "roundArray: float64 is no format with codes",
    ],
    [
      "no format",
      () => decodeArray(Uint16Array.of(1), undefined as never),
      "decodeArray: [object Undefined] is no format with codes",
    ],
    [
      "what analyses and scales make of a name",
      () => formats.compare([1], "float16" as never),
      'compare: "float16" is no format',
    ],
    [
      "packing by a name",
      () => formats.packCodes(Uint8Array.of(1), "float4e2m1fn" as never),
      'packCodes: "float4e2m1fn" is no format',
    ],
    ["objects", () => encodeArray({} as never, float16), "values are a Object"],
    [
      "buffers",
      () => encodeArray(new ArrayBuffer(8) as never, float16),
      "values are a ArrayBuffer",
    ],
    [
      "DataViews",
      () => encodeArray(new DataView(new ArrayBuffer(8)) as never, float16),
      "values are a DataView",
    ],
    ["no codes", () => decodeArray(null as never, float16), "codes is null"],
    ["detached values", () => encodeArray(detached, float16), "the buffer of values is detached"],
    [
      "detached codes",
      () => decodeArray(detachedCodes, float16),
      "the buffer of codes is detached",
    ],
    [
      "a detached output",
      () => encodeArray([1], float16, detachedCodes),
      "the buffer of out is detached",
    ],
    [
      "a detached output of numbers",
      () => decodeArray(Uint16Array.of(1), float16, detached),
      "the buffer of out is detached",
    ],
    [
      "codes of another width",
      () => decodeArray(new Uint8Array(2), float16),
      "decodeArray: codes is a Uint8Array; codes of float16 need a Uint16Array",
    ],
    [
      "an output of another width",
      () => encodeArray([1], float8e4m3fn, new Uint16Array(1) as never),
      "out is a Uint16Array; codes of float8e4m3fn need a Uint8Array",
    ],
    [
      "clamped bytes",
      () => decodeArray(new Uint8ClampedArray(1) as never, float8e4m3fn),
      "codes is a Uint8ClampedArray",
    ],
    [
      "an output that holds no numbers",
      () => roundArray([1], float16, new Int32Array(1) as never),
      "out is a Int32Array; numbers need a Float32Array or Float64Array",
    ],
    [
      "an unknown rounding",
      () => encodeArray([1], float16, undefined, { rounding: "nearest" as never }),
      'unknown rounding "nearest"',
    ],
    [
      "stochastic rounding without a seed",
      () => encodeArray([1], float16, undefined, { rounding: "stochastic" }),
      'rounding "stochastic" needs a seed',
    ],
    [
      "a seed for another rounding",
      () => encodeArray([1], float16, undefined, { seed: 1 }),
      'seed and offset are for rounding "stochastic", not "nearestEven"',
    ],
  ];
  test.each(cases)("%s", (_, run, message) => {
    expect(run).toThrow(TypeError);
    expect(run).toThrow(message);
  });

  const ranges: [name: string, run: () => unknown, message: string][] = [
    [
      "a short output",
      () => encodeArray([1, 2], float16, new Uint16Array(1)),
      "encodeArray: out holds 1 elements, but there are 2; pass one at least as long, or none",
    ],
    [
      "a short output of numbers",
      () => decodeArray(new Uint16Array(2), float16, new Float32Array(1)),
      "out holds 1",
    ],
    [
      "a short rounded output",
      () => roundArray([1, 2], float16, new Float32Array(1)),
      "out holds 1",
    ],
    [
      "a short rounded output of float32",
      () => roundArray(Float32Array.of(1, 2), float16, new Float32Array(1)),
      "out holds 1",
    ],
    [
      "a negative seed",
      () => encodeArray([1], float16, undefined, { rounding: "stochastic", seed: -1 }),
      "seed is -1; pass an integer from 0 to 2^53 − 1",
    ],
    [
      "codes that are none",
      () => decodeArray(Uint8Array.of(1, 16), float4e2m1fn),
      "16 is no float4e2m1fn code",
    ],
    [
      "one such among many",
      () => decodeArray(new Uint32Array(5000).fill(2 ** 19, 4999), formats.tfloat32),
      "524288 is no tfloat32 code",
    ],
  ];
  test.each(ranges)("%s", (_, run, message) => {
    expect(run).toThrow(RangeError);
    expect(run).toThrow(message);
  });
});

describe("engines without the kernels", () => {
  afterEach(() => {
    vi.unstubAllGlobals();
    vi.resetModules();
  });

  const refusing = (): unknown => ({
    ...WebAssembly,
    Module: class {
      constructor() {
        throw new WebAssembly.CompileError("violates the Content Security Policy");
      }
    },
  });
  test.each([
    ["no WebAssembly", () => undefined],
    ["a policy that refuses to compile", refusing],
  ])("%s: the same results, and bulkBackend says so", async (_, stub) => {
    const values = numbersFor(float16, float32Words(31));
    const want = [float16, bfloat16, float8e4m3fn].map((format) =>
      encodeArray(values, format as FloatFormat),
    );
    const doubles = Float64Array.from(values.subarray(0, 3000));
    const options = { rounding: "stochastic", seed: 3 } as const;
    const stochastic = encodeArray(doubles, float16, undefined, options);
    vi.stubGlobal("WebAssembly", stub());
    vi.resetModules();
    const plain = await import("./index.js");
    expect(plain.bulkBackend()).toBe("javascript");
    const got = [plain.float16, plain.bfloat16, plain.float8e4m3fn].map((format) =>
      plain.encodeArray(values, format as FloatFormat),
    );
    for (const [i, codes] of got.entries()) expectSame(codes, want[i] as typeof codes);
    expectSame(plain.encodeArray(doubles, plain.float16, undefined, options), stochastic);
    expectSame(
      plain.decodeArray(got[0] as Uint16Array, plain.float16),
      decodeArray(want[0] as Uint16Array, float16),
    );
  });
});

test("arrays whose last piece is a few numbers long are converted to their end", () => {
  const values = Float32Array.from({ length: 4110 }, (_, i) => Math.sin(i) * 2 ** ((i % 40) - 20));
  const expected = Array.from(values, (value) => float16.round(value));
  expectSame([...decodeArray(encodeArray(values, float16), float16)], expected);
  expectSame([...roundArray(values, float16)], expected);
});

test("a last piece of a few numbers is not the first few", () => {
  for (const length of [4097, 4099, 4160, 8193]) {
    const values = Float32Array.from({ length }, (_, i) => i % 1024);
    const decoded = decodeArray(encodeArray(values, float16), float16);
    expect(decoded.subarray(-5)).toEqual(values.subarray(-5));
  }
});
