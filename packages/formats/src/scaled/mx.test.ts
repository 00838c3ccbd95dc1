import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { float4e2m1fn } from "../float4e2m1fn.js";
import { float6e2m3fn } from "../float6e2m3fn.js";
import { float8e4m3fn } from "../float8e4m3fn.js";
import { float8e5m2 } from "../float8e5m2.js";
import { float16 } from "../float16.js";
import type { FloatFormat } from "../format.js";
import { decodeMx, encodeMx, type MxRule, mxScale } from "./mx.js";
import { packCodes, unpackCodes } from "./pack-codes.js";

const rules: MxRule[] = ["floor", "ceil", "even", "rceil"];
const scales = (amax: number): number[] =>
  rules.map((rule) => mxScale(amax, float4e2m1fn, rule) - 127);

describe("the rules on float4e2m1fn, whose maximum is 6 = 1.5 · 2²", () => {
  test.each([
    [4, [0, 0, 0, 0]],
    [5, [0, 1, 0, 0]],
    [6, [0, 1, 0, 0]],
    [6.1, [0, 1, 0, 1]],
    [7, [0, 1, 1, 1]],
    [8, [1, 1, 1, 1]],
  ])("amax %d", (amax, expected) => {
    expect(scales(amax)).toEqual(expected);
  });

  test("scales are held within e8m0; 0 has the smallest, NaN and infinity have NaN", () => {
    expect(scales(0)).toEqual([-127, -127, -127, -127]);
    expect(scales(2 ** -149)).toEqual([-127, -127, -127, -127]);
    expect(scales(Number.MAX_VALUE)).toEqual([127, 127, 127, 127]);
    expect(scales(Number.NaN)).toEqual([128, 128, 128, 128]);
    expect(scales(Infinity)).toEqual([128, 128, 128, 128]);
  });

  test("even has a scale for the largest float32", () => {
    expect(scales((2 - 2 ** -23) * 2 ** 127)).toEqual([125, 126, 126, 126]);
  });
});

test("rceil never saturates, and floor at most halves its scale", () => {
  for (const format of [float8e4m3fn, float8e5m2, float6e2m3fn, float4e2m1fn]) {
    fc.assert(
      fc.property(fc.double({ min: 1e-30, max: 1e30, noNaN: true }), (amax) => {
        const rceil = 2 ** (mxScale(amax, format, "rceil") - 127);
        const floor = 2 ** (mxScale(amax, format, "floor") - 127);
        const { max } = format.finfo;
        return (
          amax / rceil <= max && amax / rceil > max / 2 && (floor === rceil || 2 * floor === rceil)
        );
      }),
    );
  }
});

describe("blocks", () => {
  test("a row that is no multiple of 32 ends in a shorter block", () => {
    const values = Float32Array.from({ length: 2 * 40 }, (_, i) => (i % 40 < 32 ? 1 : 2 ** -20));
    const mx = encodeMx(values, float4e2m1fn, { columns: 40 });
    expect([...mx.scales]).toEqual([125, 105, 125, 105]);
    expect(mx.codes).toHaveLength(80);
    expect(decodeMx(mx)).toEqual(values);
    const flat = encodeMx(values, float4e2m1fn);
    expect(flat.scales).toHaveLength(3);
  });

  test("a NaN or an infinity makes its block NaN, and no other", () => {
    for (const bad of [Number.NaN, Infinity, -Infinity]) {
      const values = Float32Array.from({ length: 64 }, (_, i) => (i === 40 ? bad : 3));
      for (const format of [float8e5m2, float4e2m1fn]) {
        const mx = encodeMx(values, format);
        expect([...mx.scales]).toEqual([mxScale(3, format), 255]);
        expect([...mx.codes.subarray(32)]).toEqual(new Array(32).fill(0));
        const decoded = decodeMx(mx);
        expect([...decoded.subarray(0, 32)]).toEqual(new Array(32).fill(3));
        expect(decoded.subarray(32).every(Number.isNaN)).toBe(true);
      }
    }
  });

  test("elements saturate unless asked otherwise", () => {
    const values = [1.99 * 2 ** 15];
    expect([...decodeMx(encodeMx(values, float8e5m2))]).toEqual([57344]);
    expect([...decodeMx(encodeMx(values, float8e5m2, { saturate: false }))]).toEqual([Infinity]);
  });

  test("encoding again changes nothing", () => {
    const values = Float32Array.from({ length: 320 }, (_, i) => Math.sin(i) * 2 ** (i % 9));
    for (const rule of rules) {
      const first = decodeMx(encodeMx(values, float8e4m3fn, { rule }));
      expect(decodeMx(encodeMx(first, float8e4m3fn, { rule }))).toEqual(first);
    }
  });

  test("wrong formats, rules and scales are refused", () => {
    const wrong = float16 as unknown as FloatFormat<Uint8Array>;
    expect(() => encodeMx([1], wrong)).toThrow("float16 is no MX element: use float8e4m3fn, ");
    expect(() => encodeMx([1], float4e2m1fn, { rule: "round" as MxRule })).toThrow(
      'unknown MX rule "round": use floor, ceil, even or rceil',
    );
    const mx = encodeMx([1], float4e2m1fn);
    expect(() => decodeMx({ ...mx, scales: new Uint8Array(2) })).toThrow(
      "decodeMx: 1 blocks need as many scales, not 2",
    );
    expect([...decodeMx(encodeMx([], float4e2m1fn))]).toEqual([]);
  });
});

describe("packCodes", () => {
  test("two 4-bit codes in a byte, the first in the low half", () => {
    expect([...packCodes(Uint8Array.of(0x1, 0xf, 0x7), float4e2m1fn)]).toEqual([0xf1, 0x07]);
  });

  test("four 6-bit codes in three bytes, from the lowest bit on", () => {
    const codes = Uint8Array.of(0b000001, 0b100010, 0b110011, 0b111100);
    expect([...packCodes(codes, float6e2m3fn)]).toEqual([0b10000001, 0b00111000, 0b11110011]);
  });

  test("every length comes back", () => {
    for (const format of [float4e2m1fn, float6e2m3fn, float8e4m3fn]) {
      fc.assert(
        fc.property(fc.array(fc.integer({ min: 0, max: 2 ** format.bits - 1 })), (list) => {
          const codes = Uint8Array.from(list);
          const bytes = packCodes(codes, format);
          expect(bytes).toHaveLength(Math.ceil((list.length * format.bits) / 8));
          expect(unpackCodes(bytes, format, list.length)).toEqual(codes);
        }),
      );
    }
  });

  test("what is no code, and bytes that do not fit, are refused", () => {
    expect(() => packCodes(Uint8Array.of(0, 16), float4e2m1fn)).toThrow(
      "packCodes: 16 at 1 is no float4e2m1fn code: pass integers from 0 to 15",
    );
    expect(() => unpackCodes(new Uint8Array(2), float6e2m3fn, 3)).toThrow(
      "unpackCodes: 3 codes of float6e2m3fn fill 3 bytes, not 2",
    );
    expect(() => unpackCodes(new Uint8Array(0), float6e2m3fn, -1)).toThrow(RangeError);
  });
});
