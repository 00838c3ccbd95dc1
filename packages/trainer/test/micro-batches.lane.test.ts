import { autocast } from "@halfstep/autocast";
import { requestTestDevice } from "@halfstep/device/testing";
import { GradScaler } from "@halfstep/grad-scaler";
import { BertForMaskedLM, DigitsCnn, GPT } from "@halfstep/models";
import type { Module } from "@halfstep/nn";
import { AdamW, SGD } from "@halfstep/optim";
import {
  ampPrimitives,
  cpuRuntime,
  crossEntropy,
  flatten,
  gpuRuntime,
  linear,
  type Plan,
  type Runtime,
  type Tensor,
} from "@halfstep/tensor";
import { allPasses, type PassName } from "@halfstep/tensor/internals";
import { describe, expect, test } from "vitest";
import { parameterSha256 } from "../src/index.js";
import { type Precision, precisions, references } from "./reference-steps.js";

// Two micro-batches in one recording: gradients of the second are added to those of the first by the launches that make them.

type Model = Module & { forward(x: Tensor): Tensor };

/** A step of two micro-batches, and what it trains. */
function microBatches(
  runtime: Runtime,
  model: Model,
  inputs: readonly Tensor[],
  precision: Precision,
) {
  const optimizer = new AdamW(runtime.target, flatten(model.parameters()), { lr: 0.01 });
  const scaler = new GradScaler(ampPrimitives(runtime), {
    enabled: precision === "float16",
    initScale: 2 ** 24,
    backoffFactor: 2 ** -5,
    growthInterval: 2,
  });
  const lossOf = (input: Tensor): Tensor => {
    const scores = model.forward(input);
    const rows = scores.reshape([-1, scores.shape.at(-1) as number]);
    const labels = Uint32Array.from({ length: rows.shape[0] as number }, (_, i) => i % 10);
    return crossEntropy(rows, runtime.tensor(labels));
  };
  const step = (): void => {
    for (const input of inputs) {
      const loss =
        precision === "float32"
          ? lossOf(input)
          : autocast({ dtype: precision }, () => lossOf(input));
      scaler.scale(loss).backward();
    }
    scaler.step(optimizer);
    scaler.update();
    optimizer.zeroGrad();
  };
  return { scaler, step };
}

const isAccumulation = (name: string): boolean => name.startsWith("accumulate");

const unfolded = allPasses.filter((name) => name !== "foldAccumulations");

describe("kernels that make gradients add them", () => {
  const planned = (passes: readonly PassName[], name: string, precision: Precision): Plan => {
    const runtime = cpuRuntime({ passes });
    const reference = references.find((other) => other.name.startsWith(name));
    if (!reference) throw new RangeError(`there is no ${name}`);
    const { model, input } = reference.make(runtime);
    return runtime.plan(microBatches(runtime, model, [input, input], precision).step);
  };
  const launches: Readonly<Record<string, readonly number[]>> = {
    MLP: [6, 0],
    DigitsCnn: [11, 0],
    "ResNet-20": [65, 0],
    "U-Net": [64, 0],
    "BERT-small": [74, 0],
    GPT: [76, 0],
  };

  // Both 16-bit formats have one structure.
  const kinds = precisions.filter((name) => name !== "bfloat16");

  test.each(Object.entries(launches))("%s", (name, [before, after]) => {
    const counts = (passes: readonly PassName[]): number[][] =>
      kinds.map((precision) => {
        const { launches } = planned(passes, name, precision);
        const alone = launches.filter(({ launch }) => isAccumulation(launch.kernel.name));
        return [launches.length, alone.length];
      });
    const [apart, folded] = [counts(unfolded), counts(allPasses)];
    expect(apart.map(([, alone]) => alone)).toEqual(kinds.map(() => before));
    expect(folded.map(([, alone]) => alone)).toEqual(kinds.map(() => after));
    const gone = apart.map(([count = 0], i) => count - (folded[i]?.[0] ?? 0));
    expect(gone).toEqual(kinds.map(() => (before ?? 0) - (after ?? 0)));
  });
});

const waves = (length: number, seed: number): Float32Array =>
  Float32Array.from({ length }, (_, i) => Math.sin(seed + i * 1.7));
const words = (seed: number): Uint32Array =>
  Uint32Array.from({ length: 16 }, (_, i) => (seed + i * 3) % 10);

interface Trained {
  readonly model: Model;
  readonly inputs: readonly Tensor[];
}

type Make = (runtime: Runtime) => Trained;

const models: Readonly<Record<string, Make>> = {
  "a CNN": (runtime) => ({
    model: new DigitsCnn(runtime, { seed: 0 }),
    inputs: [0, 1].map((seed) => runtime.tensor(waves(2 * 784, seed), [2, 28, 28, 1])),
  }),
  "a GPT": (runtime) => ({
    model: new GPT(runtime, {
      ...{ seed: 0, vocabSize: 10, blockSize: 8 },
      ...{ nLayer: 1, nHead: 2, nEmbd: 16, dropout: 0.1 },
    }),
    inputs: [0, 1].map((seed) => runtime.tensor(words(seed), [2, 8])),
  }),
  "a BERT": (runtime) => ({
    model: new BertForMaskedLM(runtime, {
      ...{ seed: 0, vocabSize: 10, hiddenSize: 16, numHiddenLayers: 1 },
      ...{ numAttentionHeads: 2, intermediateSize: 32, maxPositionEmbeddings: 8 },
    }),
    inputs: [0, 1].map((seed) => runtime.tensor(words(seed), [2, 8])),
  }),
};

/** Trains from a scale that overflows in float16. */
async function trained(runtime: Runtime, make: Make, precision: Precision) {
  const { model, inputs } = make(runtime);
  const { scaler, step } = microBatches(runtime, model, inputs, precision);
  for (let i = 0; i < 6; i++) await runtime.step(step);
  const names = runtime.lastPlan?.launches.map(({ launch }) => launch.kernel.name) ?? [];
  return {
    names,
    sha256: await parameterSha256(model.namedParameters()),
    outcomes: await scaler.drain(),
  };
}

const searches = (names: readonly string[]): readonly string[] =>
  names.filter((name) => name === "check-finite");

describe.each(Object.entries(models))("%s is trained to the same bits", (_, make) => {
  test.each(precisions)("on the CPU, %s", async (precision) => {
    const folded = await trained(cpuRuntime(), make, precision);
    const plain = await trained(cpuRuntime({ passes: [] }), make, precision);
    expect(folded.names.some((name) => name.includes("+accumulate"))).toBe(true);
    expect([folded.sha256, folded.outcomes]).toEqual([plain.sha256, plain.outcomes]);
  });
});

// A BERT has no kind of gradient that a GPT lacks. Programs take most of the time: each model has one tier.
const onGpu = [
  ["a CNN", "packed"],
  ["a GPT", "native"],
] as const;

describe("on a GPU", () => {
  test.each(onGpu)("%s is trained to the same bits, %s tier", async (name, tier) => {
    const make = models[name] as Make;
    const device = await requestTestDevice({ tier });
    const precision = tier === "native" ? "float16" : "bfloat16";
    const folded = await trained(gpuRuntime(device), make, precision);
    const apart = await trained(gpuRuntime(device, { passes: unfolded }), make, precision);
    expect([folded.sha256, folded.outcomes]).toEqual([apart.sha256, apart.outcomes]);
    // What is not finite is found in the sums, as they are stored.
    expect(searches(folded.names)).toEqual([]);
    if (precision === "float16") {
      const found = new Set(folded.outcomes.map(({ status }) => status));
      expect(found).toEqual(new Set(["skipped", "applied"]));
    }
  });
});

describe("a sum of finite gradients that is infinite skips its step", () => {
  const runners: readonly (readonly [string, () => Promise<Runtime>])[] = [
    ["the CPU", async () => cpuRuntime()],
    ["the GPU", async () => gpuRuntime(await requestTestDevice())],
  ];

  test.each(runners)("on %s", async (name, open) => {
    const runtime = await open();
    const weight = runtime.variable(new Float32Array(32), [4, 8], { requiresGrad: true });
    const optimizer = new SGD(runtime.target, flatten([weight]), { lr: 1e-38 });
    const scaler = new GradScaler(ampPrimitives(runtime), { initScale: 1, growthInterval: 1000 });
    const train = (values: readonly number[]): Promise<unknown> =>
      runtime.step(() => {
        for (const value of values) {
          const x = runtime.tensor(new Float32Array(32).fill(value), [4, 8]);
          scaler.scale(linear(x, weight).sum()).backward();
        }
        scaler.step(optimizer);
        scaler.update();
        optimizer.zeroGrad();
      });
    // Gradients are sums over four rows. After the second step the scale is one half, and each gradient of the last is infinite.
    const steps = [
      [4e37, 4e37],
      [4.5e37, 4.5e37],
      [4e37, -4e37],
      [3e38, -3e38],
    ];
    for (const values of steps) await train(values);
    const statuses = (await scaler.drain()).map(({ status }) => status);
    expect(statuses).toEqual(["applied", "skipped", "applied", "skipped"]);
    const names = runtime.lastPlan?.launches.map(({ launch }) => launch.kernel.name);
    expect(names).toContain(`matmul+accumulate${name === "the GPU" ? "+check-finite" : ""}`);
  });
});

test("steps in which stores are counted fold nothing, and count the same", async () => {
  const counted = async (passes: readonly PassName[]) => {
    const runtime = cpuRuntime({ passes, underflow: "always" });
    const { names, sha256 } = await trained(runtime, models["a GPT"] as Make, "float16");
    return { names, sha256, sites: await runtime.underflow() };
  };
  const [folded, plain] = [await counted(allPasses), await counted(unfolded)];
  expect(folded.names).toEqual(plain.names);
  expect([folded.sha256, folded.sites]).toEqual([plain.sha256, plain.sites]);
});
