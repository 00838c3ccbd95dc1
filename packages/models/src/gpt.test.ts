import { DTypeError } from "@halfstep/autocast";
import { loadTorchStateDict, type StateDict, torchStateDict } from "@halfstep/nn";
import { cpuRuntime, noGrad, type Runtime, ShapeError } from "@halfstep/tensor";
import { expect, test } from "vitest";
import { GPT, type GPTOptions } from "./index.js";

const tiny = { vocabSize: 11, blockSize: 8, nLayer: 2, nHead: 2, nEmbd: 8 };

const tokens = (runtime: Runtime, values: readonly number[]) =>
  runtime.tensor(Uint32Array.from(values), [1, values.length]);

test.each<[string, Omit<GPTOptions, "seed">, number]>([
  ["small", {}, 124_439_808],
  ["medium", { nLayer: 24, nHead: 16, nEmbd: 1024 }, 354_823_168],
  ["XL", { nLayer: 48, nHead: 25, nEmbd: 1600 }, 1_557_611_200],
])("GPT-2 %s has as many parameters as published", (_, options, count) => {
  expect(GPT.parameterCount(options)).toBe(count);
});

test.each([tiny, { ...tiny, bias: false, nLayer: 1 }])(
  "the parameters that are counted are those that are made, the tied one once: %o",
  (options) => {
    const model = new GPT(cpuRuntime(), { seed: 1, ...options });
    const made = [...model.parameters()].reduce((sum, { size }) => sum + size, 0);
    expect(GPT.parameterCount(options)).toBe(made);
  },
);

test.each(["float32", "float16"] as const)("no token sees a later one in %s", async (dtype) => {
  const runtime = cpuRuntime();
  const model = new GPT(runtime, { seed: 2, ...tiny }).store(dtype);
  const logits = (values: readonly number[]) =>
    noGrad(() => model.forward(tokens(runtime, values))).toArray();
  const before = await logits([1, 2, 3, 4, 5, 6, 7]);
  const after = await logits([1, 2, 3, 10, 5, 0, 7]);
  const places = Array.from({ length: 7 }, (_, place) => place);
  const changed = places.filter((place) =>
    before.slice(place * 11, (place + 1) * 11).some((value, i) => value !== after[place * 11 + i]),
  );
  expect(changed).toEqual([3, 4, 5, 6]);
});

test("weights start as in nanoGPT: those that end a branch smaller by √(2 · nLayer)", async () => {
  const model = new GPT(cpuRuntime(), { seed: 1, ...tiny, nEmbd: 64, nLayer: 8 });
  const state = await model.stateDict();
  const deviation = (name: string): number => {
    const data = state[name]?.data as Float32Array;
    return Math.sqrt(data.reduce((sum, value) => sum + value ** 2, 0) / data.length);
  };
  expect(deviation("transformer.h.3.mlp.cFc.weight") / 0.02).toBeCloseTo(1, 1);
  expect(deviation("transformer.h.3.mlp.cProj.weight") / (0.02 / 4)).toBeCloseTo(1, 1);
  expect(deviation("transformer.h.3.attn.cProj.weight") / (0.02 / 4)).toBeCloseTo(1, 1);
  expect(deviation("transformer.wte.weight") / 0.02).toBeCloseTo(1, 1);
  expect(deviation("transformer.h.3.attn.cAttn.bias")).toBe(0);
});

test("initializerRange scales all weights that start at random", async () => {
  const [usual, wide] = await Promise.all(
    [0.02, 0.05].map((initializerRange) =>
      new GPT(cpuRuntime(), { seed: 1, ...tiny, initializerRange }).stateDict(),
    ),
  );
  const ratios = (name: string): number[] =>
    Array.from(
      wide?.[name]?.data as Float32Array,
      (value, i) => value / (usual?.[name]?.data[i] as number),
    );
  for (const name of [
    "transformer.wte.weight",
    "transformer.wpe.weight",
    "transformer.h.0.mlp.cProj.weight",
  ])
    for (const ratio of ratios(name)) expect(ratio).toBeCloseTo(2.5, 4);
});

test("dropout is drawn in training alone, and from the generator's place on", async () => {
  const runtime = cpuRuntime();
  const model = new GPT(runtime, { seed: 1, ...tiny, dropout: 0.3 });
  const bits = async (): Promise<string> => {
    const logits = noGrad(() => model.forward(tokens(runtime, [1, 2, 3])));
    return (await logits.toArray()).join();
  };
  const start = model.generator.offset;
  const first = await bits();
  expect(await bits()).not.toBe(first);
  model.generator.offset = start;
  expect(await bits()).toBe(first);
  model.eval();
  const still = await bits();
  expect(still).not.toBe(first);
  expect(await bits()).toBe(still);
});

test("checkpoints of the hub, which lack the head and have masks, load", async () => {
  const runtime = cpuRuntime();
  const state = await torchStateDict(new GPT(runtime, { seed: 1, ...tiny }));
  const mask = { shape: [1], dtype: "float32", data: new Float32Array(1) } as const;
  const hub: StateDict = {
    ...Object.fromEntries(
      Object.entries(state)
        .filter(([name]) => name !== "lm_head.weight")
        .map(([name, saved]) => [name.replace("transformer.", ""), saved]),
    ),
    "h.0.attn.bias": mask,
    "h.1.attn.masked_bias": mask,
  };
  const model = new GPT(runtime, { seed: 2, ...tiny });
  expect(loadTorchStateDict(model, hub)).toEqual({ missing: [], unexpected: [], misshapen: [] });
  expect(await torchStateDict(model)).toEqual(state);
  const body = new GPT(runtime, { seed: 3, ...tiny }).transformer;
  loadTorchStateDict(body, state, { strict: false });
  expect(await torchStateDict(body)).toEqual(
    Object.fromEntries(
      Object.entries(state).flatMap(([name, saved]) =>
        name.startsWith("transformer.") ? [[name.replace("transformer.", ""), saved]] : [],
      ),
    ),
  );
});

test("what are no tokens is refused by name", () => {
  const runtime = cpuRuntime();
  const model = new GPT(runtime, { seed: 1, ...tiny });
  expect(() => model.forward(runtime.zeros([1, 4]))).toThrow(DTypeError);
  expect(() => model.forward(tokens(runtime, [1, 2, 3, 4, 5, 6, 7, 8, 9]))).toThrow(ShapeError);
  expect(() => new GPT(runtime, { seed: 1, ...tiny, nHead: 3 })).toThrow("no multiple of nHead");
});
