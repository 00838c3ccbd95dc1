import { autocast } from "@halfstep/autocast";
import { f16round } from "@halfstep/formats";
import {
  ExponentialMovingAverage,
  FP16Optimizer,
  LostUpdateMeter,
  SGD,
  StochasticWeightAverage,
} from "@halfstep/optim";
import { cpuRuntime, flatten } from "@halfstep/tensor";
import { expect, test } from "vitest";
import { classifier, logitsOf, lossOf as lossIn, type Samples, sampleBatches } from "./classes.js";

const batches = sampleBatches(6, 12, 0) as [Samples, ...Samples[]];
const [first] = batches;

type Model = ReturnType<typeof classifier>;

const lossOf = (model: Model, batch: Samples) =>
  autocast({ dtype: "float16" }, () => lossIn(model, batch));

/** A half model of the classes task. */
const start = () => {
  const runtime = cpuRuntime();
  const model = classifier(runtime);
  model.half();
  const optimizer = new SGD(runtime.target, flatten(model.parameters()), { lr: 0.1 });
  const parameters = async (): Promise<number[]> => {
    const values = await Promise.all([...model.parameters()].map((each) => each.toArray()));
    return values.flatMap((each) => [...each]);
  };
  return { runtime, model, optimizer, parameters };
};

test("averages of recorded steps go through the model, and its next step trains on", async () => {
  const { runtime, model, optimizer, parameters } = start();
  const ema = new ExponentialMovingAverage(optimizer, { decay: 0.5 });
  const meter = new LostUpdateMeter(optimizer);
  const train = (batch: Samples) =>
    runtime.step(() => {
      lossOf(model, batch).backward();
      optimizer.step();
      ema.update();
      optimizer.zeroGrad();
    });
  for (const batch of batches) await train(batch);
  const own = await parameters();
  const logits = async (): Promise<number[]> => {
    const result = await runtime.step(() =>
      autocast({ dtype: "float16" }, () => logitsOf(model, first)),
    );
    return [...(await result.toArray())];
  };
  const before = await logits();
  const [group] = (await ema.stateDict()).groups;
  const averages = Object.values(group?.parameters ?? {}).flatMap(({ average }) => [
    ...(average ?? []),
  ]);
  const averaged = await ema.during(async () => {
    expect(await parameters()).toEqual(averages.map(f16round));
    await expect(train(first)).rejects.toThrow("step() would train from averaged parameters");
    return logits();
  });
  expect(averaged).not.toEqual(before);
  expect([await parameters(), await logits()]).toEqual([own, before]);
  await train(first);
  expect(await ema.updates()).toEqual([batches.length + 1]);
  const { steps, total, tensors } = await meter.read();
  expect([steps, tensors.length, total.updates > 100]).toEqual([batches.length + 1, 4, true]);
});

test("what a dropped recording did to averages, meters and FP16Optimizer is undone", async () => {
  const { runtime, model, optimizer: inner, parameters } = start();
  const optimizer = new FP16Optimizer(inner, { staticLossScale: 8, verbose: false });
  const swa = new StochasticWeightAverage(optimizer);
  const meter = new LostUpdateMeter(optimizer);
  const train = (fail?: () => never) =>
    runtime.step(() => {
      optimizer.backward(lossOf(model, first));
      optimizer.updateMasterGrads();
      fail?.();
      optimizer.step();
      swa.update();
      optimizer.zeroGrad();
    });
  await train();
  const snapshot = async () => [
    await parameters(),
    await swa.stateDict(),
    await optimizer.stateDict(),
    await meter.read(),
  ];
  const before = await snapshot();
  const stop = (): never => {
    throw new Error("stopped");
  };
  await expect(train(stop)).rejects.toThrow("stopped");
  await expect(
    runtime.step(() => {
      swa.swap();
      stop();
    }),
  ).rejects.toThrow("stopped");
  await expect(
    runtime.step(() => {
      optimizer.backward(lossOf(model, first));
      optimizer.step();
      swa.update();
      stop();
    }),
  ).rejects.toThrow("stopped");
  expect(await snapshot()).toEqual(before);
  await train();
  expect(await swa.updates()).toEqual([2]);
});
