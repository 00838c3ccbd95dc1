import { autocast } from "@halfstep/autocast";
import { GradScaler } from "@halfstep/grad-scaler";
import { AdamW } from "@halfstep/optim";
import { ampPrimitives, cpuRuntime, flatten, noGrad } from "@halfstep/tensor";
import { expect, it } from "vitest";
import { classifier, lossOf, type Samples, sampleBatches } from "../test/classes.js";
import type { StepMetrics } from "./summary.js";
import { type TrainOptions, type TrainResult, train } from "./train.js";

const lrAfter = (applied: number): number => 0.01 / (1 + applied);

/** A classifier, and a way to train it without a word on learning rates. */
function training() {
  const runtime = cpuRuntime();
  const model = classifier(runtime);
  const optimizer = new AdamW(runtime.target, flatten(model.parameters()), { lr: 0.01 });
  const told: StepMetrics[] = [];
  const run = (options: Partial<TrainOptions<Samples>> = {}): Promise<TrainResult> =>
    train<Samples>({
      ...{ runtime, optimizer, precision: "float16", epochs: 1 },
      loss: (batch) => lossOf(model, batch),
      scaler: new GradScaler(ampPrimitives(runtime), {
        initScale: 2 ** 26,
        outcomeSchedule: false,
      }),
      batches: (epoch) => sampleBatches(20, 16, epoch),
      onStep: (metrics) => void told.push(metrics),
      ...options,
    });
  return { model, optimizer, told, run };
}

it("is by default that of the optimizer's first group at each step", async () => {
  const { run, told, optimizer } = training();
  const [group] = optimizer.paramGroups;
  if (!group) throw new Error("the optimizer has no group");
  let steps = 0;
  const afterStep = (): void => {
    steps++;
    if (steps === 10) group.lr = 0.5;
    if (steps === 12) group.lr = lrAfter;
  };
  const { appliedSteps, skippedSteps } = await run({ hooks: { rate: { afterStep } } });
  let applied = 0;
  const expected = told.map((metrics, i) => {
    const before = applied;
    if (metrics.applied) applied++;
    return i < 10 ? 0.01 : i < 12 ? 0.5 : lrAfter(before);
  });
  expect(told.map(({ lr }) => lr)).toEqual(expected);
  expect([appliedSteps > 8, skippedSteps > 0]).toEqual([true, true]);
});

it("has to be told where the optimizer has no groups", async () => {
  const { run, told, optimizer } = training();
  const bare = {
    stepSupportsAmpScaling: true,
    gradients: () => optimizer.gradients(),
    step: (options: object) => optimizer.step(options),
    zeroGrad: () => optimizer.zeroGrad(),
  };
  await expect(run({ optimizer: bare })).rejects.toThrow(
    "the optimizer has no paramGroups[0].lr for the metrics: pass lr",
  );
  await run({ optimizer: bare, lr: () => 0.25, maxSteps: 1 });
  expect(told.map(({ lr }) => lr)).toEqual([0.25]);
});

it("training inside a region, which would end before steps are recorded, is refused and changes nothing", async () => {
  const { run, model } = training();
  const before = await model.stateDict();
  const runs: Promise<TrainResult>[] = [];
  const start = (): void => void runs.push(run());
  noGrad(start);
  autocast({ dtype: "float16" }, start);
  await expect(runs[0]).rejects.toThrow("train() inside noGrad()");
  await expect(runs[1]).rejects.toThrow("train() inside autocast()");
  expect(await model.stateDict()).toEqual(before);
});
