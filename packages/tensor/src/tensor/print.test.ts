import { inspect } from "node:util";
import { DTypeError } from "@halfstep/autocast";
import { afterEach, expect, test, vi } from "vitest";
import { cpuRuntime, tensorFormatter } from "../index.js";

afterEach(() => {
  vi.restoreAllMocks();
});

test("a tensor prints its shape, dtype and place, and its elements once they were read", async () => {
  const runtime = cpuRuntime();
  const x = runtime.tensor([1, -0.5, 1 / 3, 1e-9, Number.NaN, 70_000], [2, 3]);
  expect(`${x}`).toBe("Tensor [2, 3] float32 (cpu), not read yet: await print() or toArray()");
  await x.toArray();
  const text = `Tensor [2, 3] float32 (cpu)
[[      1,    -0.5, 0.33333],
 [   1e-9,     NaN,   70000]]`;
  expect(`${x}`).toBe(text);
  expect(inspect({ x })).toContain("Tensor [2, 3] float32 (cpu)");
  expect(tensorFormatter.header(x)).toEqual(["pre", { style: "margin: 0" }, text]);
  expect(tensorFormatter.header({ x })).toBeNull();
  x.dispose();
  expect(`${x}`).toBe("Tensor [2, 3] float32 (cpu), disposed");
});

test("what was read is forgotten when a variable changes", async () => {
  const runtime = cpuRuntime();
  const weight = runtime.variable([2], [1], { name: "weight", requiresGrad: true });
  await weight.item();
  expect(`${weight}`).toBe("Variable weight [1] float32 (cpu), requires grad\n[2]");
  await runtime.step(() => {
    const doubled = weight.mul(2);
    expect(`${doubled}`).toContain("not read yet");
    weight.assign(doubled);
  });
  expect(`${weight}`).toContain("not read yet");
});

test("print() reads; of long axes it prints the ends", async () => {
  const printed = vi.spyOn(console, "log").mockReturnValue();
  const runtime = cpuRuntime();
  await runtime
    .tensor(
      Int32Array.from({ length: 1200 }, (_, i) => -i),
      [2, 600],
    )
    .print();
  await runtime.tensor([], [0, 2]).print();
  await runtime.tensor(7).print();
  expect(printed.mock.calls.flat()).toEqual([
    `Tensor [2, 600] int32 (cpu)
[[    0,    -1,    -2, …,  -597,  -598,  -599],
 [ -600,  -601,  -602, …, -1197, -1198, -1199]]`,
    "Tensor [0, 2] float32 (cpu)\n[]",
    "Tensor [] float32 (cpu)\n7",
  ]);
});

test("masks have a name, and arrays have the type of their dtype", async () => {
  const runtime = cpuRuntime();
  const mask = runtime.tensor([true, false, true]);
  expect([mask.dtype, ...(await mask.toArray("uint32"))]).toEqual(["uint32", 1, 0, 1]);
  const made = runtime.tensor([0.5, 0, Number.NaN], [3], { dtype: "bool" });
  expect(await made.toArray()).toEqual(Uint32Array.of(1, 0, 1));
  expect(await runtime.tensor([0.5, 0]).to("bool").toArray()).toEqual(Uint32Array.of(1, 0));
  expect(await runtime.full([2], 3, { dtype: "bool" }).toArray()).toEqual(Uint32Array.of(1, 1));
  const wide = cpuRuntime({ arithmetic: "float64" }).tensor(Int32Array.of(-1));
  expect(await wide.toArray("int32")).toEqual(Int32Array.of(-1));
  const halves: Float32Array = await mask.to("float16").toArray("float16");
  expect(halves).toEqual(Float32Array.of(1, 0, 1));
  await expect(mask.toArray("float32")).rejects.toThrow(DTypeError);
});

test("JSON has the text of a tensor, also of one with a graph", async () => {
  const runtime = cpuRuntime();
  const weight = runtime.variable([1], [1], { requiresGrad: true, name: "weight" });
  const loss = weight.mul(2).sum();
  const unread = "Tensor [] float32 (cpu), requires grad, not read yet: await print() or toArray()";
  expect(JSON.parse(JSON.stringify({ loss }))).toEqual({ loss: unread });
  await loss.item();
  expect(JSON.stringify([loss, weight])).toBe(JSON.stringify([String(loss), String(weight)]));
});
