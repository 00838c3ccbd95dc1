import { wrapDevice } from "@halfstep/device";
import { requestTestDevice } from "@halfstep/device/testing";
import { describe, expect, test } from "vitest";
import {
  ClosedTensorError,
  cpuRuntime,
  flatten,
  flattenByDType,
  gpuRuntime,
  RecordingError,
  type Runtime,
  type Storage,
  type Variable,
} from "../index.js";

const variable = (runtime: Runtime, name: string, values: readonly number[]): Variable =>
  runtime.variable(values, [values.length], { requiresGrad: true, name });

/** Elements of a flat buffer. */
const read = async (
  runtime: Runtime,
  buffer: Storage,
  offset = 0,
  length = 2,
): Promise<number[]> => [
  ...(await runtime.target.read({ buffer, offset: offset * 4, length, dtype: "float32" })),
];

describe("flatten()", () => {
  test("a step that is dropped would lose what it moved, so that it is refused inside of steps", async () => {
    const runtime = cpuRuntime();
    const a = variable(runtime, "a", [1, 2, 3]);
    const refused =
      /^flatten\(\) inside a step: it changes what a step that is dropped could not restore/;
    const flattening = (): void => void flatten([a]);
    await expect(runtime.step(flattening)).rejects.toThrow(refused);
    for (const call of ["dryRun", "plan"] as const)
      expect(() => runtime[call](flattening)).toThrow(refused);
    await expect(runtime.prepare(flattening)).rejects.toThrow(refused);
    expect([...(await a.toArray())]).toEqual([1, 2, 3]);
    flatten([a]);
    expect([...(await a.toArray())]).toEqual([1, 2, 3]);
  });

  test("what is no list of variables is refused in a line", () => {
    const runtime = cpuRuntime();
    for (const wrong of [{ parameters() {} }, [runtime.tensor([1])], undefined, "weights"])
      expect(() => flatten(wrong as never)).toThrow("flatten(variables): variables ");
  });

  test("moves variables into one buffer, each at a multiple of 128 elements", async () => {
    const runtime = cpuRuntime();
    const [a, b] = [variable(runtime, "a", [1, 2, 3]), variable(runtime, "b", [4, 5])];
    const flat = flatten([a, b]);
    expect(flat.segments).toEqual([
      { name: "a", offset: 0, shape: [3] },
      { name: "b", offset: 128, shape: [2] },
    ]);
    expect([await read(runtime, flat.values), await read(runtime, flat.values, 128)]).toEqual([
      [1, 2],
      [4, 5],
    ]);
    await runtime.step(() => b.assign(b.mul(10)));
    expect(await read(runtime, flat.values, 128)).toEqual([40, 50]);
    expect([...(await a.toArray())]).toEqual([1, 2, 3]);
  });

  test("an empty variable may be the last, at the end of the buffers, on a GPU too", async () => {
    for (const runtime of [cpuRuntime(), gpuRuntime(await requestTestDevice())]) {
      const a = variable(runtime, "a", new Array(64).fill(2));
      const none = runtime.variable([], [0, 3], { requiresGrad: true, name: "none" });
      const { gradients } = flatten([a, none]);
      await runtime.step(() => {
        a.square().sum().add(none.sum()).backward();
        for (const each of [a, none]) each.assign(each.sub(each.grad as Variable));
      });
      expect(await read(runtime, gradients)).toEqual([4, 4]);
      expect([...new Set(await a.toArray()), none.grad?.shape]).toEqual([-2, [0, 3]]);
    }
  });

  test("halves are aligned in their own size, and have float32 gradients", async () => {
    const runtime = cpuRuntime();
    const halves = [1, 2].map((value) =>
      runtime.variable([value], [1], { requiresGrad: true, dtype: "bfloat16" }),
    );
    const flat = flatten(halves);
    expect([flat.dtype, flat.segments.map(({ offset }) => offset)]).toEqual(["bfloat16", [0, 128]]);
    await runtime.step(() => halves[1]?.mul(3).sum().backward());
    expect(await read(runtime, flat.gradients, 128, 1)).toEqual([3]);
  });

  test("variables without names are numbered, as their places in the list", async () => {
    const runtime = cpuRuntime();
    const bare = (): Variable => runtime.variable([1, 2], [2], { requiresGrad: true });
    const names = (...variables: Variable[]): readonly string[] =>
      flatten(variables).segments.map(({ name }) => name);
    expect(names(bare(), variable(runtime, "w", [1]), bare())).toEqual(["0", "w", "2"]);
    expect(names(bare(), variable(runtime, "w", [1]))).toEqual(["variable", "w"]);
  });

  test("a variable that is no more the model's is no silent end of its training", async () => {
    const runtime = cpuRuntime();
    const [a, b] = [variable(runtime, "a", [1, 2]), variable(runtime, "b", [3, 4])];
    const flat = flatten([a, b]);
    a.dispose();
    expect(flat.hasGradient(1)).toBe(false);
    expect(() => flat.hasGradient(0)).toThrow(ClosedTensorError);
    expect(() => flat.hasGradient(0)).toThrow(
      "a is not the model's any more: it was disposed after flatten()",
    );
  });

  test("backward writes into the flat gradients, and tells which segments have one", async () => {
    const runtime = cpuRuntime();
    const [a, b] = [variable(runtime, "a", [1, 2]), variable(runtime, "b", [3, 4])];
    const flat = flatten([a, b]);
    const present = (): boolean[] => [0, 1].map((segment) => flat.hasGradient(segment));
    expect(present()).toEqual([false, false]);
    const backward = (): Promise<void> => runtime.step(() => b.square().sum().backward());
    await backward();
    expect([present(), await read(runtime, flat.gradients, 128)]).toEqual([
      [false, true],
      [6, 8],
    ]);
    await backward();
    expect(await read(runtime, flat.gradients, 128)).toEqual([12, 16]);
    flat.zeroGrad();
    expect([present(), b.grad]).toEqual([[false, false], undefined]);
    await backward();
    expect(await read(runtime, flat.gradients, 128)).toEqual([6, 8]);
  });

  test("gradients that are present stay, with their marks, and later ones are added", async () => {
    const runtime = cpuRuntime();
    const [a, b] = [variable(runtime, "a", [1, 2]), variable(runtime, "b", [3, 4])];
    const backward = (): Promise<void> => runtime.step(() => b.mul(3).sum().backward());
    await backward();
    b.markGradient(new Set(["plain"]));
    const before = b.grad;
    const flat = flatten([a, b]);
    expect([flat.hasGradient(0), flat.hasGradient(1)]).toEqual([false, true]);
    expect(await read(runtime, flat.gradients, 128)).toEqual([3, 3]);
    expect([[...flat.gradientMarks(1)], b.grad === before, before?.name]).toEqual([
      ["plain"],
      true,
      "b.grad",
    ]);
    await backward();
    expect(await read(runtime, flat.gradients, 128)).toEqual([6, 6]);
    expect([...(await (before as Variable).toArray())]).toEqual([6, 6]);
  });

  test("a gradient that was disposed is absent", async () => {
    const runtime = cpuRuntime();
    const a = variable(runtime, "a", [1, 2]);
    await runtime.step(() => a.sum().backward());
    a.grad?.dispose();
    const flat = flatten([a]);
    expect(flat.hasGradient(0)).toBe(false);
    await runtime.step(() => a.mul(2).sum().backward());
    expect(await read(runtime, flat.gradients)).toEqual([2, 2]);
  });

  test("a gradient gives back its memory", async () => {
    const device = await wrapDevice((await requestTestDevice()).gpu);
    const runtime = gpuRuntime(device);
    const before = device.memory.live;
    const a = variable(runtime, "a", [1, 2]);
    await runtime.step(() => a.mul(2).sum().backward());
    flatten([a]);
    runtime.emptyCache();
    await runtime.flush();
    expect([...((await a.grad?.toArray()) ?? [])]).toEqual([2, 2]);
    // Values, gradients, and the one from which backward passes start.
    expect(device.memory.live - before).toBe(2 * 512 + 256);
  });

  test("tied weights are one segment", () => {
    const runtime = cpuRuntime();
    const tied = variable(runtime, "embedding", [1, 2]);
    expect(flatten([tied, variable(runtime, "b", [3]), tied]).segments).toHaveLength(2);
  });

  test("refuses what two optimizers would move, and then moves nothing", async () => {
    const runtime = cpuRuntime();
    const [a, b] = [variable(runtime, "a", [1]), variable(runtime, "b", [2])];
    flatten([a]);
    expect(() => flatten([b, a])).toThrow(RecordingError);
    expect(() => flatten([b, a])).toThrow(/parameter a is in an optimizer already/);
    expect(flatten([b]).segments).toHaveLength(1);
    expect([await a.item(), await b.item()]).toEqual([1, 2]);
  });

  test("refuses mixed dtypes, integers, and nothing", () => {
    const runtime = cpuRuntime();
    const half = runtime.variable([1], [1], { dtype: "float16", name: "half" });
    const count = runtime.variable(Uint32Array.of(1), [1], { name: "count" });
    expect(() => flatten([variable(runtime, "a", [1]), half])).toThrow(/a is float32 and half is/);
    expect(() => flatten([count])).toThrow(/count is uint32/);
    expect(() => flatten([])).toThrow(/pass model\.parameters\(\)/);
  });

  test("by dtype, each group is a pair of buffers", () => {
    const runtime = cpuRuntime();
    const half = runtime.variable([1], [1], { dtype: "float16", name: "half" });
    const groups = flattenByDType([variable(runtime, "a", [1]), half, variable(runtime, "b", [2])]);
    expect(groups.map(({ dtype, segments }) => [dtype, segments.map(({ name }) => name)])).toEqual([
      ["float32", ["a", "b"]],
      ["float16", ["half"]],
    ]);
  });

  test("gives back the memory that the variables had", async () => {
    const device = await wrapDevice((await requestTestDevice()).gpu);
    const runtime = gpuRuntime(device);
    const before = device.memory.live;
    const variables = [1, 2, 3].map((n) => variable(runtime, `v${n}`, new Array(100).fill(n)));
    flatten(variables);
    await runtime.flush();
    // Values and gradients, 512 bytes a segment each.
    expect(device.memory.live - before).toBe(2 * 3 * 512);
    expect((await variables[2]?.toArray())?.[99]).toBe(3);
  });
});

describe("on a device that binds few bytes", () => {
  /** A runtime on a device that binds at most `maxStorageBufferBindingSize` bytes. */
  async function narrowRuntime(maxStorageBufferBindingSize: number): Promise<Runtime> {
    const device = await requestTestDevice();
    const limits = new Proxy(device.capabilities.limits, {
      get: (target, name) =>
        name === "maxStorageBufferBindingSize"
          ? maxStorageBufferBindingSize
          : target[name as keyof GPUSupportedLimits],
    });
    const capabilities = { ...device.capabilities, limits };
    return gpuRuntime(
      new Proxy(device, {
        get: (target, name) =>
          name === "capabilities" ? capabilities : target[name as keyof typeof target],
      }),
    );
  }

  const letters = ["a", "b", "c", "d", "e"];

  test("flatten() says what does not fit, and flattenByDType() divides it", async () => {
    const runtime = await narrowRuntime(1024);
    const variables = letters.map((name, i) => variable(runtime, name, Array(100 + i).fill(i)));
    expect(() => flatten(variables)).toThrow(
      "flatten(): 5 variables have 2560 bytes of float32 gradients, but this device binds at most 1024 at a time: flattenByDType() makes several groups of them",
    );
    const groups = flattenByDType([...variables, variables[0] as Variable]);
    expect(groups.map(({ segments }) => segments.map(({ name }) => name))).toEqual([
      ["a", "b"],
      ["c", "d"],
      ["e"],
    ]);
    expect([...(await (variables[3] as Variable).toArray())]).toEqual(Array(103).fill(3));
  });

  test("a variable that does not fit alone is named", async () => {
    const runtime = await narrowRuntime(1024);
    const large = variable(runtime, "table", Array(300).fill(1));
    expect(() => flattenByDType([large])).toThrow(
      "flatten(): table has 1536 bytes of float32 gradients, but this device binds at most 1024 at a time: divide it into several variables",
    );
  });
});
