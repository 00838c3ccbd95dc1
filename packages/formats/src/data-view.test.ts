import { describe, expect, test } from "vitest";
import { bfloat16, float16, getBFloat16, getFloat16, setBFloat16, setFloat16 } from "./index.js";

// What test262 says of DataView.prototype.getFloat16 and setFloat16, in our own words, for both formats.
describe.each([
  ["float16", float16, getFloat16, setFloat16, 0x7e00],
  ["bfloat16", bfloat16, getBFloat16, setBFloat16, 0x7fc0],
] as const)("%s", (_, format, get, set, quietNaN) => {
  const view = (...bytes: number[]): DataView => new DataView(Uint8Array.from(bytes).buffer);
  const looseGet = get as (view: DataView, ...rest: unknown[]) => number;
  const looseSet = set as (view: DataView, ...rest: unknown[]) => void;

  test("every code, in both byte orders, at odd offsets", () => {
    const memory = new DataView(new ArrayBuffer(5));
    const wrong: number[] = [];
    for (let code = 0; code < 65536; code++) {
      const value = format.decode(code);
      memory.setUint16(1, code);
      if (!Object.is(get(memory, 1), value) || !Object.is(get(memory, 1, false), value)) {
        wrong.push(code);
      }
      memory.setUint16(3, code, true);
      if (!Object.is(get(memory, 3, true), value)) wrong.push(code);
      const stored = Number.isNaN(value) ? quietNaN : code;
      set(memory, 1, value);
      set(memory, 3, value, true);
      if (memory.getUint16(1) !== stored || memory.getUint16(3, true) !== stored) wrong.push(code);
    }
    expect(wrong).toEqual([]);
  });

  test("numbers are rounded once; zeros keep their sign; memory starts as zero", () => {
    const memory = new DataView(new ArrayBuffer(4));
    expect(get(memory, 0)).toBe(0);
    const { eps, max } = format.finfo;
    expect(set(memory, 0, 1 + eps / 2 + 2 ** -50)).toBe(undefined);
    expect(get(memory, 0)).toBe(1 + eps);
    set(memory, 0, -0);
    expect(get(memory, 0)).toBe(-0);
    set(memory, 0, 2 * max);
    expect(get(memory, 0)).toBe(Infinity);
    set(memory, 0, Number.NaN);
    expect(get(memory, 0)).toBeNaN();
  });

  test("only the bytes of the element change, and a view has its own offset", () => {
    const bytes = new Uint8Array(6).fill(0xee);
    const part = new DataView(bytes.buffer, 1, 4);
    set(part, 1, 0);
    expect([...bytes]).toEqual([0xee, 0xee, 0, 0, 0xee, 0xee]);
    expect(get(part, 1)).toBe(0);
  });

  test("offsets out of range are refused", () => {
    const memory = view(0, 0, 0, 0);
    for (const offset of [-1, -Infinity, Infinity, 3, 4, 1000]) {
      expect(() => get(memory, offset)).toThrow(RangeError);
      expect(() => set(memory, offset, 1)).toThrow(RangeError);
    }
    expect(() => get(new DataView(memory.buffer, 2, 1), 0)).toThrow(RangeError);
  });

  test("offsets, byte order and values are converted as in DataView's own methods", () => {
    const memory = view(0x3f, 0x80, 0x80, 0x3f);
    const first = get(memory, 0);
    expect(looseGet(memory)).toBe(first);
    for (const offset of ["0", null, false, Number.NaN, 0.9, -0.9, ""]) {
      expect(looseGet(memory, offset)).toBe(first);
    }
    for (const little of [1, "x", {}, Infinity]) {
      expect(looseGet(memory, 2, little)).toBe(get(memory, 2, true));
    }
    for (const little of [0, "", null, undefined, Number.NaN]) {
      expect(looseGet(memory, 2, little)).toBe(get(memory, 2));
    }
    looseSet(memory, 0, "2");
    expect(get(memory, 0)).toBe(2);
    looseSet(memory, 0);
    expect(get(memory, 0)).toBeNaN();
    for (const bad of [Symbol("1"), 1n]) {
      expect(() => looseGet(memory, bad)).toThrow(TypeError);
      expect(() => looseSet(memory, 0, bad)).toThrow(TypeError);
    }
  });

  test("a bad offset is reported before the value is asked, one past the end after", () => {
    const memory = view(0, 0);
    const asked: number[] = [];
    const value = { valueOf: () => asked.push(1) };
    expect(() => looseSet(memory, -1, value)).toThrow(RangeError);
    expect(asked).toEqual([]);
    expect(() => looseSet(memory, 100, value)).toThrow(RangeError);
    expect(asked).toEqual([1]);
  });

  test("detached buffers, also those detached by the value, and what is no DataView", () => {
    const memory = view(0, 0);
    const detach = (): number => {
      structuredClone(null, { transfer: [memory.buffer] });
      return 1;
    };
    expect(() => looseSet(memory, 0, { valueOf: detach })).toThrow(TypeError);
    expect(() => get(memory, 0)).toThrow(TypeError);
    expect(() => get(memory, 13)).toThrow(TypeError);
    expect(() => looseGet({} as DataView, 0)).toThrow(TypeError);
    expect(() => looseGet(new Uint16Array(4) as never, 0)).toThrow(TypeError);
  });
});
