import fc from "fast-check";
import { afterEach, describe, expect, test, vi } from "vitest";
import { f16round, float16 } from "./index.js";

// What test262 says of Math.f16round, in our own words (built-ins/Math/f16round, staging/sm/Math/f16round.js).
describe("values", () => {
  test.each([
    [0, 0],
    [-0, -0],
    [Infinity, Infinity],
    [-Infinity, -Infinity],
    [Number.NaN, Number.NaN],
    [1.337, 1.3369140625],
    [5.05, 5.05078125],
    [2049, 2048],
    [2051, 2052],
    [65504, 65504],
    [65519.999999999985, 65504],
    [65520, Infinity],
    [-65520, -Infinity],
    [2 ** -24, 2 ** -24],
    [2 ** -25, 0],
    [-(2 ** -25), -0],
    [2 ** -25 * (1 + Number.EPSILON), 2 ** -24],
    [1.5 * 2 ** -24, 2 ** -23],
    [Number.MIN_VALUE, 0],
    [-Number.MIN_VALUE, -0],
    [Number.MAX_VALUE, Infinity],
    // Rounded once: through float32 these ties would fall the other way.
    [1 + 2 ** -11 + 2 ** -52, 1 + 2 ** -10],
    [1 + 2 ** -11, 1],
    [1 + 3 * 2 ** -11 - 2 ** -52, 1 + 2 ** -10],
    [2 ** -14 - 2 ** -26, 2 ** -14],
  ])("%d → %d", (value, rounded) => {
    expect(f16round(value)).toBe(rounded);
  });

  test("all float16 stay; any number becomes what float16.round says", () => {
    const moved: number[] = [];
    for (let code = 0; code < 65536; code++) {
      const value = float16.decode(code);
      if (!Object.is(f16round(value), value)) moved.push(code);
    }
    expect(moved).toEqual([]);
    fc.assert(
      fc.property(fc.double(), (value) => Object.is(f16round(value), float16.round(value))),
    );
  });
});

test("the argument becomes a number as everywhere in Math", () => {
  const loose = f16round as (value?: unknown) => number;
  expect(loose()).toBeNaN();
  expect(loose(null)).toBe(0);
  expect(loose("0x10")).toBe(16);
  expect(loose(true)).toBe(1);
  expect(loose({ valueOf: () => 2.0001 })).toBe(2);
  expect(() => loose(1n)).toThrow(TypeError);
  expect(() => loose(Symbol("1"))).toThrow(TypeError);
  const thrown = new Error("from valueOf");
  expect(() =>
    loose({
      valueOf() {
        throw thrown;
      },
    }),
  ).toThrow(thrown);
});

test("it can stand in for the engine's", () => {
  Object.defineProperty(Math, "f16round", { value: f16round, configurable: true });
  expect((Math as { f16round?: typeof f16round }).f16round?.(2049)).toBe(2048);
  Reflect.deleteProperty(Math, "f16round");
});

describe("the engine's own", () => {
  afterEach(() => {
    Reflect.deleteProperty(Math, "f16round");
    vi.resetModules();
  });

  const withEngine = async (engine: (value: number) => number): Promise<typeof f16round> => {
    Object.defineProperty(Math, "f16round", { value: engine, configurable: true });
    vi.resetModules();
    return (await import("./f16round.js")).f16round;
  };

  test("is used where it is right", async () => {
    const engine = (value: number): number => float16.round(value);
    expect(await withEngine(engine)).toBe(engine);
  });

  test("is passed over where it rounds twice", async () => {
    const round = await withEngine((value) => float16.round(Math.fround(value)));
    expect(round(1 + 2 ** -11 + 2 ** -40)).toBe(1 + 2 ** -10);
  });
});
