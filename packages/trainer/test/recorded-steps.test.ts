import { requestTestDevice, testTiers } from "@halfstep/device/testing";
import { GradScaler } from "@halfstep/grad-scaler";
import { AdamW, clipGradNorm, oneCycle, SGD } from "@halfstep/optim";
import {
  ampPrimitives,
  cpuRuntime,
  type FlatVariables,
  flatten,
  gpuRuntime,
  type Runtime,
} from "@halfstep/tensor";
import { describe, expect, it } from "vitest";
import { classifier, lossOf, type Samples, sampleBatches } from "./classes.js";

const gpus = (await testTiers()).map(
  (tier) =>
    [`GPU, ${tier} tier`, async () => gpuRuntime(await requestTestDevice({ tier }))] as const,
);
const runtimes = [["CPU", async () => cpuRuntime()], ...gpus] as const;

const steps = 30;
const lr = oneCycle({ maxLr: 0.05, totalSteps: steps });
const optimizers = [
  ["AdamW", (runtime: Runtime, flat: FlatVariables) => new AdamW(runtime.target, flat, { lr })],
  [
    "SGD",
    (runtime: Runtime, flat: FlatVariables) =>
      new SGD(runtime.target, flat, { lr, momentum: 0.9, nesterov: true, weightDecay: 0.01 }),
  ],
] as const;
type MakeOptimizer = (typeof optimizers)[number][1];

/** Training in recorded float32 steps under a scaler, batch by batch. */
const training = (runtime: Runtime, make: MakeOptimizer) => {
  const model = classifier(runtime);
  const optimizer = make(runtime, flatten(model.parameters()));
  const scaler = new GradScaler(ampPrimitives(runtime), {
    growthInterval: 8,
    outcomeSchedule: false,
  });
  return {
    scaler,
    optimizer,
    async step(batch: Samples): Promise<void> {
      await runtime.step(() => {
        scaler.scale(lossOf(model, batch)).backward();
        scaler.unscale(optimizer);
        clipGradNorm(optimizer, 0.5);
        scaler.step(optimizer);
        scaler.update();
        optimizer.zeroGrad();
      });
    },
    async parameters(): Promise<number[]> {
      const values = await Promise.all([...model.parameters()].map((each) => each.toArray()));
      return values.flatMap((each) => [...each]);
    },
  };
};

const hostile = (batch: Samples): Samples => ({
  ...batch,
  features: batch.features.map((value, i) => (i === 7 ? Number.NaN : value)),
});

const batches = sampleBatches(steps, 24, 0);

describe.each(optimizers)("%s in recorded steps", (_, make) => {
  it("computes on every GPU tier what it computes on the CPU", async () => {
    const results: number[][] = [];
    for (const [, open] of runtimes) {
      const { step, parameters, scaler } = training(await open(), make);
      for (const [i, batch] of batches.entries()) await step(i % 10 === 4 ? hostile(batch) : batch);
      expect((await scaler.drain()).map(({ status }) => status)).toEqual(
        batches.map((_, i) => (i % 10 === 4 ? "skipped" : "applied")),
      );
      results.push(await parameters());
    }
    const [cpu = [], ...others] = results;
    const largest = Math.max(...cpu.map(Math.abs));
    const differences = others.map((values) =>
      Math.max(...values.map((value, i) => Math.abs(value - (cpu[i] as number)) / largest)),
    );
    expect(others.length).toBe(gpus.length);
    for (const difference of differences) expect(difference).toBeLessThan(1e-5);
  });

  it.each(runtimes)("a skipped step changes no bit: %s", async (_name, open) => {
    const { step, parameters, optimizer, scaler } = training(await open(), make);
    for (const batch of batches.slice(0, 3)) await step(batch);
    const snapshot = async () => [
      await parameters(),
      await optimizer.stateDict(),
      await optimizer.appliedSteps(),
    ];
    const before = await snapshot();
    const { scale } = await scaler.stateDict();

    await step(hostile(batches[3] as Samples));
    expect(await snapshot()).toEqual(before);
    expect(await scaler.getScale()).toBe((scale as number) / 2);

    await step(batches[3] as Samples);
    expect(await optimizer.appliedSteps()).toEqual([4]);
    expect(await parameters()).not.toEqual(before[0]);
  });
});
