import { Float16Array as PeerArray } from "@petamoriken/float16";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import type { HalfArrayConstructor } from "./index.js";
import { BFloat16Array, bfloat16, Float16Array, float16 } from "./index.js";

/** What a `HalfArray` promises, on every engine. */
function contract(name: string, made: () => HalfArrayConstructor, format: typeof float16): void {
  describe(name, () => {
    let Half: HalfArrayConstructor;
    beforeAll(() => {
      Half = made();
    });
    const eps = format.finfo.eps;

    test("from a length, numbers, an iterable, a list, another array", () => {
      expect([...new Half(2)]).toEqual([0, 0]);
      expect([...new Half()]).toEqual([]);
      expect([...new Half([1, 1 + eps / 4])]).toEqual([1, 1]);
      expect([...new Half(Float64Array.of(1 + eps / 2 + 2 ** -40))]).toEqual([1 + eps]);
      expect([...Half.from(new Set([1, 2]))]).toEqual([1, 2]);
      expect([...Half.of(1, -2)]).toEqual([1, -2]);
      expect([...Half.from(Half.of(3, -0))]).toEqual([3, -0]);
      expect([...Half.from({ length: 1, 0: 5 })]).toEqual([5]);
      expect([...Half.from(Half.of(3, 4), (x, i) => 10 * x + i)]).toEqual([30, 41]);
      expect(Half.BYTES_PER_ELEMENT).toBe(2);
      expect(String(Half.of())).not.toBe("[object Object]");
    });

    test("a view of memory", () => {
      const codes = Uint16Array.of(9, format.encode(1), format.encode(2), 9);
      const half = new Half(codes.buffer, 2, 2);
      expect([...half]).toEqual([1, 2]);
      expect([half.length, half.byteOffset, half.byteLength]).toEqual([2, 2, 4]);
      expect(half.buffer).toBe(codes.buffer);
      expect(half.codes).toEqual(codes.subarray(1, 3));
      half.set(0, -1);
      expect(codes[1]).toBe(format.encode(-1));
      half.codes[0] = format.encode(7);
      expect(half.get(0)).toBe(7);
      const shared = new SharedArrayBuffer(4);
      expect([...new Half(shared)]).toEqual([0, 0]);
      expect(() => new Half(codes.buffer, 1)).toThrow(RangeError);
      expect(() => new Half(new ArrayBuffer(3))).toThrow(RangeError);
      expect(() => new Half(codes.buffer, 0, 5)).toThrow(RangeError);
    });

    test("get and set, one and many", () => {
      const half = new Half(4);
      half.set(1, 1 + eps / 2 + 2 ** -40);
      expect(half.get(1)).toBe(1 + eps);
      half.set([1, 2], 2);
      half.set(Half.of(9));
      expect([...half]).toEqual([9, 1 + eps, 1, 2]);
      half.set(3, Number.NaN);
      expect(half.get(3)).toBeNaN();
      for (const index of [-1, 4, 0.5, Number.NaN, "0" as never]) {
        expect(() => half.get(index)).toThrow(RangeError);
      }
      expect(() => half.set(4, 1)).toThrow(RangeError);
      expect(() => half.set([1, 2], 3)).toThrow(`2 elements from 3 on do not fit into 4`);
      expect(() => half.set([1], -1)).toThrow(RangeError);
    });

    test("a slice is a copy, a subarray a view; overlapping sets", () => {
      const half = Half.of(1, 2, 3, 4);
      const copy = half.slice(1, -1);
      const view = half.subarray(1, -1);
      half.set(1, 7);
      expect([...copy]).toEqual([2, 3]);
      expect([...view]).toEqual([7, 3]);
      expect(copy).toBeInstanceOf(Half);
      expect(view).toBeInstanceOf(Half);
      half.set(half.subarray(0, 3), 1);
      expect([...half]).toEqual([1, 1, 7, 3]);
      expect([half.at(-1), half.at(0), half.at(4)]).toEqual([3, 1, undefined]);
      expect(half.fill(5, 1, 3)).toBe(half);
      expect([...half]).toEqual([1, 5, 5, 3]);
    });

    test("toFloat32Array", () => {
      const values = Float32Array.from({ length: 1000 }, (_, i) => i / 8);
      const half = Half.from(values);
      expect(half.toFloat32Array()).toEqual(values.map((x) => format.round(x)));
      const out = new Float32Array(1001);
      expect(half.toFloat32Array(out)).toBe(out);
      expect(out[999]).toBe(format.round(999 / 8));
    });

    test("what are no numbers is refused", () => {
      const half = new Half(2);
      expect(() => half.set(0, "1" as never)).toThrow(TypeError);
      expect(() => half.set(0, 1n as never)).toThrow(TypeError);
      expect(() => half.set(["1"] as never)).toThrow(TypeError);
      expect(() => half.fill("1" as never)).toThrow(TypeError);
      expect(() => new Half(["1"] as never)).toThrow(TypeError);
      expect(() => new Half("12" as never)).toThrow(TypeError);
      expect(() => new Half(BigInt64Array.of(1n) as never)).toThrow(TypeError);
      expect(() => Half.from(BigInt64Array.of(1n) as never)).toThrow(TypeError);
      expect(() => new Half(-1)).toThrow(RangeError);
    });
  });
}

contract("Float16Array", () => Float16Array, float16);
contract("BFloat16Array", () => BFloat16Array, bfloat16);

describe("on an engine with Float16Array", () => {
  // A stand-in for the engine's class that follows the same standard.
  let Half: HalfArrayConstructor;
  beforeAll(async () => {
    vi.stubGlobal("Float16Array", PeerArray);
    vi.resetModules();
    Half = (await import("./float16-array.js")).Float16Array;
  });
  afterAll(() => {
    vi.unstubAllGlobals();
    vi.resetModules();
  });

  test("it is a subclass of the engine's, so that elements can be indexed", () => {
    const half = Half.of(1, 2);
    expect(half).toBeInstanceOf(PeerArray);
    expect((half as unknown as number[])[1]).toBe(2);
  });

  contract("Float16Array", () => Half, float16);
});
