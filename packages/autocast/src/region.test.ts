import fc from "fast-check";
import { describe, expect, test, vi } from "vitest";
import {
  type AutocastOptions,
  type AutocastRegion,
  autocast,
  currentRegion,
  policyOf,
  withoutAutocast,
} from "./index.js";

describe("regions", () => {
  test("there is none outside", () => {
    expect(currentRegion()).toBeUndefined();
  });

  test("autocast returns what its callback returns", () => {
    const tensor = { shape: [2, 3] };
    expect(autocast({ dtype: "float16" }, () => tensor)).toBe(tensor);
    expect(autocast({ dtype: "float16" }, () => {})).toBeUndefined();
    expect(withoutAutocast(() => null)).toBeNull();
  });

  test("inner regions override outer ones and give them back", () => {
    const seen: (AutocastRegion | undefined)[] = [];
    const look = () => seen.push(currentRegion());
    autocast({ dtype: "float16" }, () => {
      look();
      autocast({ dtype: "bfloat16" }, look);
      withoutAutocast(look);
      autocast({ dtype: "float16", enabled: false }, look);
      look();
    });
    look();
    const float16 = { enabled: true, dtype: "float16", policies: {} };
    const off = { enabled: false, policies: {} };
    expect(seen).toEqual([
      float16,
      { enabled: true, dtype: "bfloat16", policies: {} },
      off,
      off,
      float16,
      undefined,
    ]);
  });

  test("a throwing callback ends its region, and its error comes out as it is", () => {
    const error = new Error("shape mismatch");
    autocast({ dtype: "bfloat16" }, () => {
      const outer = currentRegion();
      expect(() =>
        autocast({ dtype: "float16" }, () => {
          throw error;
        }),
      ).toThrow(error);
      expect(currentRegion()).toBe(outer);
    });
    expect(currentRegion()).toBeUndefined();
  });

  test("any nesting, thrown out of anywhere: the innermost region decides and none is left behind", () => {
    interface Node {
      options: AutocastOptions;
      throws: boolean;
      children: readonly Node[];
    }
    const options = fc.constantFrom<AutocastOptions>(
      { dtype: "float16" },
      { dtype: "bfloat16" },
      { enabled: false },
      { dtype: "float16", enabled: false },
      { dtype: "float16", policies: { exp: "none" } },
    );
    const { node } = fc.letrec<{ node: Node }>((tie) => ({
      node: fc.record({
        options,
        throws: fc.boolean(),
        children: fc.oneof(
          { maxDepth: 4 },
          fc.constant([]),
          fc.array(tie("node"), { minLength: 1, maxLength: 3 }),
        ),
      }),
    }));
    const visit = ({ options, throws, children }: Node): void => {
      const before = currentRegion();
      const run = () =>
        autocast(options, () => {
          const here = currentRegion();
          expect(here?.enabled).toBe(options.enabled ?? true);
          if (here?.enabled) expect(here.dtype).toBe(options.dtype);
          for (const child of children) {
            visit(child);
            expect(currentRegion()).toBe(here);
          }
          if (throws) throw new RangeError("out");
        });
      if (throws) expect(run).toThrow(RangeError);
      else run();
      expect(currentRegion()).toBe(before);
    };
    fc.assert(fc.property(node, visit));
    expect(currentRegion()).toBeUndefined();
  });

  test("two copies of the package share one stack", async () => {
    vi.resetModules();
    const copy = await import("./index.js");
    expect(copy.autocast).not.toBe(autocast);
    const seen = autocast({ dtype: "float16" }, () => copy.currentRegion());
    expect(seen).toMatchObject({ dtype: "float16" });
    copy.withoutAutocast(() => expect(currentRegion()).toMatchObject({ enabled: false }));
    expect(Reflect.get(globalThis, Symbol.for("@halfstep/autocast"))).toEqual([]);
  });
});

describe("what autocast refuses", () => {
  const untyped = autocast as (options: unknown, fn: () => unknown) => unknown;

  test.each([
    ["an async function", async () => 1],
    ["a promise", () => new Promise(() => {})],
    // biome-ignore lint/suspicious/noThenProperty: refusing such objects is what is tested.
    ["a foreign thenable", () => ({ then: () => {} })],
  ])("%s", (_, fn) => {
    expect(() => untyped({ dtype: "float16" }, fn)).toThrow(TypeError);
    expect(() => untyped({ dtype: "float16" }, fn)).toThrow(
      /returned a promise.*await outside of it/,
    );
    expect(currentRegion()).toBeUndefined();
  });

  test.each([
    ["a generator", function* () {}],
    ["an async generator", async function* () {}],
  ])("%s, whose body would run outside of the region", (_, fn) => {
    const message =
      "the autocast callback returned a promise or generator, but the region has ended: await outside of it";
    expect(() => untyped({ dtype: "float16" }, fn)).toThrow(new TypeError(message));
    const wrapped = autocast({ dtype: "float16" })(fn as () => never);
    expect(() => wrapped()).toThrow(message);
    expect(currentRegion()).toBeUndefined();
  });

  test("no iterator over values that exist, and nothing else with some of these methods", () => {
    const strict = new Proxy({}, { get: (_, name) => expect.fail(`${String(name)} was read`) });
    for (const value of [[1].values(), { next: () => {} }, { throw: () => {} }, strict, null])
      expect(untyped({ dtype: "float16" }, () => value)).toBe(value);
  });

  test("the promise's own rejection does not surface as well", async () => {
    const fn = async () => {
      throw new Error("inside");
    };
    expect(() => untyped({ dtype: "float16" }, fn)).toThrow(/returned a promise/);
    // Unhandled rejections are reported by now, and vitest fails a run that has one.
    await new Promise((resolve) => setTimeout(resolve, 5));
  });

  test.each([
    [{}, "autocast has no dtype"],
    [{ dtype: "float32" }, "autocast cannot lower ops to float32"],
    [{ dtype: "half" }, "autocast cannot lower ops to half"],
  ])("options %j", (options, reason) => {
    const fn = vi.fn();
    expect(() => untyped(options, fn)).toThrow(
      `${reason}: use float16 or bfloat16, or { enabled: false } for float32`,
    );
    expect(fn).not.toHaveBeenCalled();
    expect(currentRegion()).toBeUndefined();
  });

  test.each([0, 1, null, "false", ""])("enabled: %j, whose meaning is unclear", (enabled) => {
    const fn = vi.fn();
    expect(() => untyped({ dtype: "float16", enabled }, fn)).toThrow(
      `enabled of autocast is ${JSON.stringify(enabled)}: it must be true or false`,
    );
    expect(fn).not.toHaveBeenCalled();
  });
});

describe("as a decorator", () => {
  test("a function runs in the region at every call, with its arguments and its this", () => {
    const scaled = autocast({ dtype: "float16" })(function (this: { factor: number }, x: number) {
      return [this.factor * x, currentRegion()?.enabled];
    });
    expect(scaled.call({ factor: 3 }, 2)).toEqual([6, true]);
    expect(currentRegion()).toBeUndefined();
  });

  test("a method runs in the region", () => {
    class Head {
      readonly bias = 1;
      forward(x: number): readonly [number, string | undefined] {
        const region = currentRegion();
        return [x + this.bias, region?.enabled ? region.dtype : undefined];
      }
    }
    // What a compiler makes of `@autocast({ dtype: "bfloat16" }) forward(x) { … }`.
    Head.prototype.forward = autocast({ dtype: "bfloat16" })(Head.prototype.forward);
    expect(new Head().forward(1)).toEqual([2, "bfloat16"]);
  });

  test("a wrong dtype is refused where the decorator is made", () => {
    expect(() => autocast({ dtype: "float64" as "float16" })).toThrow("float64");
  });
});

test('"*" replaces what enclosing regions say, by name too', () => {
  const policies = (name: string) => policyOf({ name, castPolicy: "promote" }, currentRegion());
  const seen = autocast({ dtype: "float16", policies: { matmul: "none", exp: "none" } }, () => [
    policies("matmul"),
    autocast({ dtype: "float16", policies: { "*": "float32", exp: "lowerPrecision" } }, () => [
      policies("matmul"),
      policies("exp"),
      policies("add"),
      autocast({ dtype: "float16", policies: { add: "none" } }, () => [
        policies("add"),
        policies("exp"),
      ]),
    ]),
    policies("add"),
  ]);
  expect(seen).toEqual([
    "none",
    ["float32", "lowerPrecision", "float32", ["none", "lowerPrecision"]],
    "promote",
  ]);
});

test("a misspelt option is refused: ops would be lowered in spite of { enable: false }", () => {
  const wrong = { dtype: "float16", enable: false } as AutocastOptions;
  const message = "autocast has no option enable: it has dtype, enabled, policies";
  expect(() => autocast(wrong, () => 1)).toThrow(message);
  expect(() => autocast(wrong)).toThrow(message);
});

test("what is no object of options is refused in a line", () => {
  const refused =
    (given: unknown): (() => unknown) =>
    () =>
      autocast(given as never, () => 1);
  const wrong = "autocast takes options first, not ";
  expect(refused(undefined)).toThrow(`${wrong}undefined: pass { dtype: "float16" }`);
  expect(refused(() => 1)).toThrow(`${wrong}a function`);
  expect(refused("float16")).toThrow(`${wrong}float16`);
  expect(() => autocast(undefined as never)).toThrow(wrong);
  expect(currentRegion()).toBeUndefined();
});
