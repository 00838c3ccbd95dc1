import { expect, test } from "vitest";
import { bfloat16 } from "./bfloat16.js";
import { joinFloat32Array, joinRemainder, remainderCode, splitFloat32Array } from "./remainder.js";

/** All 65,536 upper halves with lower halves around the places where rounding changes its mind. */
function patterns(): Uint32Array {
  const lows = [0, 1, 0x7fff, 0x8000, 0x8001, 0xfffe, 0xffff];
  const bits = new Uint32Array(65536 * lows.length);
  for (let high = 0; high < 65536; high++) {
    lows.forEach((low, i) => {
      bits[high * lows.length + i] = (high << 16) | low;
    });
  }
  return bits;
}

const numbers = (bits: Uint32Array): Float32Array => new Float32Array(bits.buffer);
const bitsOf = (values: Float32Array): Uint32Array => new Uint32Array(values.buffer);
const isQuietable = (bits: number): boolean =>
  (bits & 0x7fffffff) > 0x7f800000 && (bits & 0x400000) === 0;

test("458,752 patterns come back bit for bit, signalling NaNs quiet", () => {
  const bits = patterns();
  const back = bitsOf(joinFloat32Array(splitFloat32Array(numbers(bits))));
  const wrong = bits.filter(
    (word, i) => back[i] !== (isQuietable(word) ? (word | 0x400000) >>> 0 : word),
  );
  expect([...wrong.slice(0, 5)]).toEqual([]);
  expect(back.length).toBe(bits.length);
});

test("the code is the nearest bfloat16, ties away from zero, and NaN for every NaN", () => {
  const bits = patterns();
  const values = numbers(bits);
  const { codes, remainders } = splitFloat32Array(values);
  const wrong = bits.filter((word, i) => {
    const code = codes[i] as number;
    const value = values[i] as number;
    if (remainders[i] !== (word & 0xffff)) return true;
    return Number.isNaN(value)
      ? !Number.isNaN(bfloat16.decode(code)) || code >> 15 !== word >>> 31
      : code !== bfloat16.encode(value, { rounding: "nearestAway" });
  });
  expect([...wrong.slice(0, 5)]).toEqual([]);
});

test("it differs from nearest even in exact ties only", () => {
  const bits = patterns();
  const values = numbers(bits);
  const { codes } = splitFloat32Array(values);
  const wrong = bits.filter(
    (word, i) =>
      (word & 0xffff) !== 0x8000 &&
      !Number.isNaN(values[i]) &&
      codes[i] !== bfloat16.encode(values[i] as number),
  );
  expect([...wrong.slice(0, 5)]).toEqual([]);
});

test.each([
  ["1", 0x3f800000, 0x3f80],
  ["a tie, up from an even code", 0x3f808000, 0x3f81],
  ["the carry into the exponent", 0x3fffffff, 0x4000],
  ["the largest float32 rounds to Infinity", 0x7f7fffff, 0x7f80],
  ["Infinity", 0x7f800000, 0x7f80],
  ["-Infinity", 0xff800000, 0xff80],
  ["-0", 0x80000000, 0x8000],
  ["the smallest subnormal", 0x00000001, 0x0000],
  ["the NaN that a plain carry turns into -0", 0x7fffffff, 0x7fff],
  ["its negative, which wraps around to 0", 0xffffffff, 0xffff],
])("%s", (_, bits, code) => {
  expect(remainderCode(bits).toString(16)).toBe(code.toString(16));
  expect(joinRemainder(code, bits & 0xffff).toString(16)).toBe(bits.toString(16));
});

test("the remainder, as an int16, is the distance from the code in float32 units", () => {
  const bits = Uint32Array.of(0x40490fdb, 0x4049ffff, 0xc0498000);
  const { codes, remainders } = splitFloat32Array(numbers(bits));
  const distances = [...bits].map((word, i) => word - (codes[i] as number) * 65536);
  expect([...new Int16Array(remainders.buffer)]).toEqual(distances);
});

test("outputs are reused; lengths are checked", () => {
  const values = Float32Array.of(9, 1.5, -0.1).subarray(1);
  const out = { codes: new Uint16Array(3), remainders: new Uint16Array(3) };
  expect(splitFloat32Array(values, out)).toBe(out);
  const back = new Float32Array(4).subarray(1);
  expect([...joinFloat32Array(out, back)]).toEqual([1.5, Math.fround(-0.1), 0]);
  expect(() => splitFloat32Array(new Float32Array(4), out)).toThrow(
    "splitFloat32Array: out holds 3 elements, but there are 4; pass one at least as long, or none",
  );
  expect(() => joinFloat32Array(out, new Float32Array(2))).toThrow(RangeError);
  expect(() => joinFloat32Array({ ...out, remainders: new Uint16Array(2) })).toThrow(
    "3 codes and 2 remainders",
  );
  expect(() => splitFloat32Array(Float64Array.of(1) as never)).toThrow(
    "splitFloat32Array: values is a Float64Array; numbers to split need a Float32Array",
  );
  expect(() => splitFloat32Array([1] as never)).toThrow("values is a Array");
  expect(() => joinFloat32Array({ ...out, codes: [1] as never })).toThrow(
    "joinFloat32Array: codes is a Array; halves need a Uint16Array",
  );
  expect(() => joinFloat32Array(out, new Float64Array(3) as never)).toThrow(TypeError);
});
