import { describe, expect, test } from "vitest";
import { bfloat16, decodeArray, encodeArray, float16, roundArray } from "./index.js";

const allCodes = Uint16Array.from({ length: 65536 }, (_, code) => code);

/** Every upper half of a float32 with lower halves around the places where 16-bit roundings change their mind. */
function float32Samples(): { bits: Uint32Array; values: Float32Array } {
  const lows = [
    0, 1, 0xfff, 0x1000, 0x1001, 0x2fff, 0x3000, 0x3001, 0x7fff, 0x8000, 0x8001, 0xffff,
  ];
  const bits = new Uint32Array(65536 * lows.length);
  for (let high = 0; high < 65536; high++) {
    lows.forEach((low, i) => {
      bits[high * lows.length + i] = (high << 16) | low;
    });
  }
  return { bits, values: new Float32Array(bits.buffer) };
}

describe.each([float16, bfloat16])("$name", (format) => {
  test("bulk encoding of 786,432 float32 patterns equals the scalar one", () => {
    const { values } = float32Samples();
    const codes = encodeArray(values, format);
    const mismatches: number[] = [];
    values.forEach((value, i) => {
      if (!Number.isNaN(value) && codes[i] !== format.encode(value)) mismatches.push(value);
    });
    expect(mismatches).toEqual([]);
  });

  test("bulk decoding equals the scalar one on all codes", () => {
    const values = decodeArray(allCodes, format);
    const mismatches = allCodes.filter((code) => !Object.is(values[code], format.decode(code)));
    expect(mismatches).toEqual(new Uint16Array());
  });

  test("decode, then encode: every code that is no NaN comes back", () => {
    const codes = encodeArray(decodeArray(allCodes, format), format);
    const changed = allCodes.filter((code) => codes[code] !== code);
    expect(changed.filter((code) => !Number.isNaN(format.decode(code)))).toEqual(new Uint16Array());
  });

  test("rounding equals encode, then decode; in place too", () => {
    const { values } = float32Samples();
    const expected = decodeArray(encodeArray(values, format), format);
    const inPlace = values.slice();
    expect(roundArray(inPlace, format, inPlace)).toBe(inPlace);
    const expectedBits = new Uint32Array(expected.buffer);
    for (const rounded of [inPlace, roundArray(values, format)]) {
      const bits = new Uint32Array(rounded.buffer);
      expect(bits.length).toBe(expectedBits.length);
      expect(bits.findIndex((word, i) => word !== expectedBits[i])).toBe(-1);
    }
  });

  test("numbers that are not float32 are rounded once", () => {
    const eps = format.finfo.eps;
    const hazard = 1 + eps / 2 + 2 ** -40;
    const up = format.encode(1) + 1;
    expect([...encodeArray([hazard], format)]).toEqual([up]);
    expect([...encodeArray(Float64Array.of(hazard), format)]).toEqual([up]);
    expect([...encodeArray(Float32Array.of(hazard), format)]).toEqual([format.encode(1)]);
    expect([...roundArray([hazard], format)]).toEqual([1 + eps]);
  });

  test("options reach every element", () => {
    const values = Float32Array.of(1e38, -1e38, Infinity, 1.001);
    const { max } = format.finfo;
    const rounded = roundArray(values, format, undefined, {
      rounding: "towardZero",
      saturate: true,
    });
    expect([...rounded]).toEqual(
      [...values].map((x) =>
        format.round(Math.max(-max, Math.min(max, x)), { rounding: "towardZero" }),
      ),
    );
  });

  test("views with an offset, longer outputs and empty arrays", () => {
    const source = Float32Array.of(9, 1, 2, 3).subarray(1);
    const out = new Uint16Array(5).subarray(1);
    expect(encodeArray(source, format, out)).toBe(out);
    expect([...out]).toEqual([format.encode(1), format.encode(2), format.encode(3), 0]);
    const back = new Float32Array(5).subarray(1);
    expect([...decodeArray(out.subarray(0, 3), format, back)]).toEqual([1, 2, 3, 0]);
    expect(encodeArray([], format)).toHaveLength(0);
    expect(decodeArray(new Uint16Array(), format)).toHaveLength(0);
  });

  test("an output that is too short is refused", () => {
    expect(() => encodeArray([1, 2], format, new Uint16Array(1))).toThrow(
      "encodeArray: out holds 1 elements, but there are 2; pass one at least as long, or none",
    );
    expect(() => decodeArray(new Uint16Array(2), format, new Float32Array(1))).toThrow(RangeError);
    expect(() => roundArray([1, 2], format, new Float32Array(1))).toThrow(RangeError);
  });
});

describe("NaN policy on float32 bits", () => {
  const nans = Uint32Array.of(0x7fc00000, 0xffc00000, 0x7f800001, 0xff812345, 0x7fffffff);
  const values = new Float32Array(nans.buffer);

  test("float16: sign kept, canonical quiet NaN", () => {
    expect([...encodeArray(values, float16)]).toEqual([0x7e00, 0xfe00, 0x7e00, 0xfe00, 0x7e00]);
  });

  test("bfloat16: upper half kept, quiet bit set", () => {
    expect([...encodeArray(values, bfloat16)]).toEqual([0x7fc0, 0xffc0, 0x7fc0, 0xffc1, 0x7fff]);
  });

  test("decoding keeps sign and payload", () => {
    const half = decodeArray(Uint16Array.of(0x7e00, 0xfe00, 0x7c01), float16);
    expect([...new Uint32Array(half.buffer)]).toEqual([0x7fc00000, 0xffc00000, 0x7f802000]);
    const brain = decodeArray(Uint16Array.of(0x7fc0, 0xff81), bfloat16);
    expect([...new Uint32Array(brain.buffer)]).toEqual([0x7fc00000, 0xff810000]);
  });
});
