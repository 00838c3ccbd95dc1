import { requestTestDevice } from "@halfstep/device/testing";
import { cpuRuntime, gpuRuntime } from "@halfstep/tensor";
import { expect, test } from "vitest";
import {
  BatchNorm2d,
  Conv2d,
  describeStateDictKeys,
  Generator,
  loadTorchStateDict,
  type Module,
  Sequential,
  type StateDict,
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

test("what is no state dict is refused in one line", async () => {
  const module = model(1);
  const state = await module.stateDict();
  const load = (given: unknown) => () => module.loadStateDict(given as StateDict);
  const loadTorch = (given: unknown) => () => loadTorchStateDict(module, given as StateDict);
  for (const each of [load, loadTorch]) {
    expect(each(module.stateDict())).toThrow(
      /^load\w+\(.*state\): state is a Promise; await it, and pass what it resolves to$/,
    );
    expect(each(null)).toThrow("state is null; pass { name: { shape, dtype, data } }");
    expect(each([])).toThrow("state is a list of 0; pass");
    expect(each({ ...state, "0.weight": (module[0] as Conv2d).weight })).toThrow(
      "0.weight in the state is a Variable; pass { shape, dtype, data }, as stateDict() does",
    );
    expect(each({ ...state, "1.bias": undefined })).toThrow("1.bias in the state is undefined");
    expect(each({ ...state, "0.weight": { data: [] } })).toThrow("has the shape undefined; pass a");
    for (const [dtype, data] of [
      ["F16", new Uint16Array(2)],
      ["bfloat16", new Uint16Array(2)],
      ["F8_E4M3", new Uint8Array(2)],
    ] as const)
      expect(each({ ...state, "1.bias": { shape: [2], dtype, data } })).toThrow(
        `1.bias in the state holds codes of ${dtype}, not numbers; decode them, as stateDictOf() of`,
      );
    expect(each(JSON.parse(JSON.stringify(state)))).toThrow(
      "the data of 0.weight in the state is an object; pass a typed array: JSON has none, so write [...data]",
    );
  }
  const listed = Object.entries(state).map(([name, saved]) => [
    name,
    { ...saved, data: [...saved.data] },
  ]);
  const copy = model(2);
  copy.loadStateDict(JSON.parse(JSON.stringify(Object.fromEntries(listed))));
  expect(await bitsOf(copy)).toBe(await bitsOf(module));
});

test("two variables of one name are refused, where one would be lost", async () => {
  const module = model(1);
  const other = model(2);
  const twice = Object.assign(new Sequential(module), { "0.0": other[0] });
  const text = "two variables have the name 0.0.weight: rename the field of one";
  await expect(twice.stateDict()).rejects.toThrow(text);
  expect(() => twice.loadStateDict({})).toThrow(text);
});

test("an error of another copy of the package is recognised", () => {
  const foreign = Object.defineProperty(new Error("no"), Symbol.for("@halfstep/StateDictError"), {
    value: true,
  });
  expect(foreign).toBeInstanceOf(StateDictError);
  expect(new Error("no")).not.toBeInstanceOf(StateDictError);
});
