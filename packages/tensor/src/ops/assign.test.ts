import { DTypeError } from "@halfstep/autocast";
import { expect, test } from "vitest";
import { places } from "../../test/forward-check.js";
import { cpuRuntime, ShapeError, type Tensor } from "../index.js";
import { accumulate } from "./index.js";

const valuesOf = async (x: Tensor): Promise<number[]> => [...(await x.toArray())];

test.each(places)("a variable takes values, cast to its dtype: %s, %s", async (_, dtype, open) => {
  const runtime = await open();
  const variable = runtime.variable([1, 2, 3, 4, 5], [5], { dtype });
  variable.assign(runtime.tensor([1 + 2 ** -20, -2, 0, 8, 0.5]));
  const exact = dtype === "float32" ? 1 + 2 ** -20 : 1;
  expect(await valuesOf(variable)).toEqual([exact, -2, 0, 8, 0.5]);
  variable.assign(variable.mul(2));
  expect(await valuesOf(variable)).toEqual([2 * exact, -4, 0, 16, 1]);
});

test.each(places)("a flag that is not 0 forbids an assignment: %s, %s", async (_, dtype, open) => {
  const runtime = await open();
  const variable = runtime.variable([1, 2, 3], [3], { dtype });
  const value = runtime.tensor([4, 5, 6]);
  variable.assign(value, { unless: runtime.tensor(1) });
  expect(await valuesOf(variable)).toEqual([1, 2, 3]);
  variable.assign(value, { unless: runtime.tensor(0) });
  expect(await valuesOf(variable)).toEqual([4, 5, 6]);
});

test.each(places)(
  "accumulation adds in float32 what is stored in any dtype: %s, %s",
  async (_, dtype, open) => {
    const runtime = await open();
    const sum = runtime.variable([2048, 0, 1], [3]);
    accumulate(sum, runtime.tensor([1, 0.5, -1], [3], { dtype }));
    accumulate(sum, runtime.tensor([1, 0.5, -1], [3], { dtype }));
    expect(await valuesOf(sum)).toEqual([2050, 1, -1]);
  },
);

test("shapes and dtypes that do not fit are refused by the variable's name", () => {
  const runtime = cpuRuntime();
  const variable = runtime.variable([1, 2], [2], { name: "fc.bias" });
  expect(() => variable.assign(runtime.zeros([3]))).toThrow(ShapeError);
  expect(() => variable.assign(runtime.zeros([3]))).toThrow(
    "assign: fc.bias has shape [2], the value has [3]",
  );
  const flag = runtime.tensor(Uint32Array.of(1));
  expect(() => variable.assign(runtime.zeros([2]), { unless: flag })).toThrow(DTypeError);
});
