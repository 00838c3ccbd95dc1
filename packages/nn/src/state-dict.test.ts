import { requestTestDevice } from "@halfstep/device/testing";
import { cpuRuntime, gpuRuntime } from "@halfstep/tensor";
import { expect, test } from "vitest";
import {
  BatchNorm2d,
  Conv2d,
  describeStateDictKeys,
  Generator,
  type Module,
  Sequential,
  StateDictError,
} from "./index.js";

const model = (seed: number, runtime = cpuRuntime()): Sequential =>
  new Sequential(
    new Conv2d(runtime, 1, 2, { kernelSize: 2, generator: new Generator(seed) }),
    new BatchNorm2d(runtime, 2),
  );

const bitsOf = async (module: Module): Promise<string> =>
  JSON.stringify(
    Object.entries(await module.stateDict()).map(([path, { shape, dtype, data }]) => [
      path,
      shape,
      dtype,
      [...data],
    ]),
  );

test("a state dict has shapes, dtypes and data of parameters and buffers", async () => {
  const state = await model(1).stateDict();
  expect(
    Object.entries(state).map(([path, { shape, dtype }]) => `${path} [${shape}] ${dtype}`),
  ).toEqual([
    "0.weight [2,2,1,2] float32",
    "0.bias [2] float32",
    "1.weight [2] float32",
    "1.bias [2] float32",
    "1.runningMean [2] float32",
    "1.runningVar [2] float32",
  ]);
  expect([...(state["1.runningVar"]?.data ?? [])]).toEqual([1, 1]);
});

test("a round trip gives the same bits, on another runtime and in 16 bits", async () => {
  const source = model(1);
  const copy = model(2, gpuRuntime(await requestTestDevice()));
  const state = await source.stateDict();
  expect(await bitsOf(copy)).not.toBe(await bitsOf(source));
  expect(copy.loadStateDict(state)).toEqual({ missing: [], unexpected: [], misshapen: [] });
  expect(await bitsOf(copy)).toBe(await bitsOf(source));

  copy.half().loadStateDict(state);
  expect(await bitsOf(copy)).toBe(await bitsOf(source.half()));
});

test("a saved state does not change with the module", async () => {
  const module = model(1);
  const state = await module.stateDict();
  const before = [...(state["0.bias"]?.data ?? [])];
  module.loadStateDict(await model(2).stateDict());
  expect([...((await module.stateDict())["0.bias"]?.data ?? [])]).not.toEqual(before);
  expect([...(state["0.bias"]?.data ?? [])]).toEqual(before);
});

test("strict loading lists all that does not fit, and changes nothing", async () => {
  const runtime = cpuRuntime();
  const module = model(1, runtime);
  const before = await bitsOf(module);
  const { "0.bias": _, ...rest } = await model(2).stateDict();
  const float32 = (shape: readonly number[], data: readonly number[]) => ({
    shape,
    dtype: "float32" as const,
    data: new Float32Array(data),
  });
  const broken = {
    ...rest,
    "1.weight": float32([1, 2], [1, 1]),
    "1.bias": float32([2], [1]),
    extra: float32([], [1]),
  };
  const error = (() => {
    try {
      module.loadStateDict(broken);
    } catch (thrown) {
      return thrown;
    }
  })();
  expect(error).toBeInstanceOf(StateDictError);
  expect(error).toMatchObject({
    missing: ["0.bias"],
    unexpected: ["extra"],
    misshapen: ["1.weight", "1.bias"],
  });
  expect((error as Error).message).toBe(
    "the state dict does not fit the module, and nothing was loaded: missing: 0.bias; unexpected: extra; " +
      "of another shape: 1.weight has shape [1,2] with 2 elements, the module's has [2], 1.bias has shape [2] with 1 elements, the module's has [2]. Pass { strict: false } to load what fits.",
  );
  expect(await bitsOf(module)).toBe(before);
});

test("loading that is not strict takes what fits, and tells the rest", async () => {
  const module = model(1);
  const { "0.bias": _, ...rest } = await model(2).stateDict();
  const extra = { shape: [], dtype: "float32" as const, data: new Float32Array(1) };
  expect(() => module.loadStateDict(rest)).toThrow("Pass { strict: false }");
  const long = { shape: [3], dtype: "float32" as const, data: new Float32Array(3) };
  const other = { ...rest, extra, "1.weight": long };
  expect(module.loadStateDict(other, { strict: false })).toEqual({
    missing: ["0.bias"],
    unexpected: ["extra"],
    misshapen: ["1.weight"],
  });
  const [loaded, source, untouched] = [
    await module.stateDict(),
    await model(2).stateDict(),
    await model(1).stateDict(),
  ];
  expect(loaded["0.weight"]).toEqual(source["0.weight"]);
  expect(loaded["0.bias"]).toEqual(untouched["0.bias"]);
  expect(loaded["1.weight"]).toEqual(untouched["1.weight"]);
});

test("loading that is not strict refuses what is of another model altogether", () => {
  const other = Object.fromEntries(
    Array.from({ length: 100 }, (_, i) => [
      `layer.${i}`,
      { shape: [], dtype: "float32" as const, data: new Float32Array(1) },
    ]),
  );
  expect(() => model(1).loadStateDict(other, { strict: false })).toThrow(
    /nothing was loaded: missing: 0\.weight, .*; unexpected: layer\.0, .*, and 94 more\.$/,
  );
  expect(() => model(1).loadStateDict({}, { strict: false })).toThrow(StateDictError);
});

test("missing and unexpected names are listed apart, missing ones with the nearest", () => {
  const keys = {
    missing: ["fc.weight", "layer1.0.downsample.0.weight", "x"],
    unexpected: ["fc1.weight", "layer1.0.shortcut.0.weight", "a".repeat(1000)],
    misshapen: [],
  };
  const [first, second, third] = keys.unexpected;
  expect(describeStateDictKeys(keys)).toBe(
    `missing: fc.weight (nearest: ${first}), layer1.0.downsample.0.weight (nearest: ${second}), x; unexpected: ${first}, ${second}, ${third}`,
  );
});

test("an error of another copy of the package is recognised", () => {
  const foreign = Object.defineProperty(new Error("no"), Symbol.for("@halfstep/StateDictError"), {
    value: true,
  });
  expect(foreign).toBeInstanceOf(StateDictError);
  expect(new Error("no")).not.toBeInstanceOf(StateDictError);
});
