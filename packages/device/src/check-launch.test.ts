import { describe, expect, test } from "vitest";
import { checkLaunch, type Kernel, type Launch } from "./index.js";

const kernel: Kernel = {
  name: "mine",
  variant: "",
  bindings: [{ name: "x", access: "read" }],
  scalars: [
    { name: "count", type: "u32" },
    { name: "shift", type: "i32" },
    { name: "rate", type: "f32", runtime: true },
  ],
  program: () => ({ code: "", workgroups: () => [1, 1, 1] }),
  reference() {},
};
const x = { buffer: {}, offset: 0, length: 4, dtype: "float32" } as const;
const scalars = { count: 4, shift: -1, rate: 0.5 };
const launch = (over: object): Launch<unknown> => ({ kernel, bindings: [x], scalars, ...over });

describe("a launch", () => {
  test.each([
    ["as its kernel wants it", {}],
    [
      "with the limits of its scalars",
      { scalars: { ...scalars, count: 2 ** 32 - 1, shift: -(2 ** 31) } },
    ],
    ["with numbers that are not finite", { scalars: { ...scalars, rate: Number.NaN } }],
  ])("%s is left alone", (_, over) => {
    expect(() => checkLaunch(launch(over))).not.toThrow();
  });

  test.each([
    [
      "without a scalar",
      { scalars: { count: 4, shift: 0 } },
      'kernel "mine" needs the scalar "rate" (f32)',
    ],
    [
      "with a scalar too many",
      { scalars: { ...scalars, eps: 1 } },
      'has no scalar "eps": it has count, shift, rate',
    ],
    [
      "with a text for a scalar",
      { scalars: { ...scalars, rate: "1" } },
      '"rate" of kernel "mine" is a string',
    ],
    ["without a binding", { bindings: [] }, "has 1 bindings (x), but got 0"],
    ["with a binding too many", { bindings: [x, x] }, "has 1 bindings (x), but got 2"],
    [
      "with a dtype that is not taken",
      { bindings: [{ ...x, dtype: "int32" }] },
      'binding "x" of kernel "mine" is int32',
    ],
  ])("%s is refused", (_, over, message) => {
    expect(() => checkLaunch(launch(over))).toThrow(TypeError);
    expect(() => checkLaunch(launch(over))).toThrow(message);
  });

  test.each([
    ["count", -1],
    ["count", 2 ** 32],
    ["count", Number.NaN],
    ["count", 0.5],
    ["shift", 2 ** 31],
  ])("whose integer %s is %d is refused", (name, value) => {
    expect(() => checkLaunch(launch({ scalars: { ...scalars, [name]: value } }))).toThrow(
      RangeError,
    );
  });
});
