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
  const wide = runtime.variable([1, 2, 3, 4, 5, 6], [2, 3], { name: "fc.weight" });
  for (const shape of [[3, 2], [6], [1, 2, 3], [1, 3], [3]])
    expect(() => wide.assign(runtime.zeros(shape))).toThrow(
      `assign: fc.weight has shape [2,3], the value has [${shape}]`,
    );
  const flag = runtime.tensor(Uint32Array.of(1));
  expect(() => variable.assign(runtime.zeros([2]), { unless: flag })).toThrow(DTypeError);
});

const integers = places.filter(([, dtype]) => dtype !== "float16");

test.each(integers)("integers are assigned bit by bit: %s, %s", async (_, __, open) => {
  const runtime = await open();
  const pointer = runtime.variable([0], [], { dtype: "int32" });
  const large = [2 ** 24 + 1, -(2 ** 31), 2 ** 31 - 1, -1, 7];
  const queue = runtime.variable([0, 0, 0, 0, 0], [5], { dtype: "int32" });
  const seen = runtime.variable(Uint32Array.of(1, 2, 3), [3]);
  const value = runtime.tensor(Int32Array.from(large));
  const flags = [0, 1].map((flag) => runtime.tensor(flag));
  for (let step = 0; step < 3; step++)
    await runtime.step(() => {
      pointer.assign(pointer.add(1));
      queue.assign(value, { unless: flags[1] });
      seen.assign(seen.mul(2 ** 15), { unless: flags[step === 1 ? 1 : 0] });
    });
  expect(await pointer.item()).toBe(3);
  expect(await valuesOf(queue)).toEqual([0, 0, 0, 0, 0]);
  expect(await valuesOf(seen)).toEqual([2 ** 30, 2 ** 31, 2 ** 30 + 2 ** 31]);
  queue.assign(value, { unless: flags[0] });
  expect(await valuesOf(queue)).toEqual(large);
  // The buffer that is read is the one that is written.
  queue.assign(queue);
  expect(await valuesOf(queue)).toEqual(large);
});

test("integers are assigned to integers of the same dtype only", () => {
  const runtime = cpuRuntime();
  const int32 = runtime.variable([1], [1], { dtype: "int32", name: "pointer" });
  const float = runtime.variable([1], [1], { name: "weight" });
  expect(() => int32.assign(float)).toThrow(DTypeError);
  expect(() => int32.assign(float)).toThrow(
    'assign: pointer is int32 and the value float32: cast the value with .to("int32")',
  );
  expect(() => float.assign(int32)).toThrow('cast the value with .to("float32")');
  expect(() => int32.assign(runtime.tensor(Uint32Array.of(1)))).toThrow(DTypeError);
});
