import { recipeOf } from "@halfstep/autocast";
import { requestTestDevice } from "@halfstep/device/testing";
import type { Mlp } from "@halfstep/models";
import { applyRecipe } from "@halfstep/nn";
import { AdamW, ExponentialMovingAverage, SGD } from "@halfstep/optim";
import {
  cpuRuntime,
  flattenByDType,
  gpuRuntime,
  type Runtime,
  type Storage,
} from "@halfstep/tensor";
import { expect, test } from "vitest";
import { classifier, lossOf, samples } from "./classes.js";

// Half models and the masters that their optimizers keep.

const groupsOf = (model: Mlp) => flattenByDType(model.parameters()).map((params) => ({ params }));

/** The example of applyRecipe. */
function o2(runtime: Runtime, seed = 1) {
  const model = classifier(runtime, seed);
  applyRecipe(model, recipeOf("O2"));
  return { model, optimizer: new AdamW(runtime.target, groupsOf(model), { lr: 0.01 }) };
}

async function step(runtime: Runtime, model: Mlp, optimizer: AdamW<Storage>): Promise<void> {
  await runtime.step(() => {
    lossOf(model, samples(16, 1)).backward();
    optimizer.step();
    optimizer.zeroGrad();
  });
}

const valuesOf = async (model: Mlp): Promise<readonly number[]> =>
  (await Promise.all([...model.parameters()].map((each) => each.toArray()))).flatMap((each) => [
    ...each,
  ]);

const farthest = (a: readonly number[], b: readonly number[]): number =>
  Math.max(...a.map((value, i) => Math.abs(value - (b[i] as number))));

const onCpu = (): Promise<Runtime> => Promise.resolve(cpuRuntime());
const onGpu = async (): Promise<Runtime> => gpuRuntime(await requestTestDevice());

test.each([
  ["master", "CPU", onCpu],
  ["master", "GPU", onGpu],
  ["kahan", "CPU", onCpu],
  ["remainder", "CPU", onCpu],
] as const)(
  "a step after loadStateDict() of the model alone goes on from what was loaded: %s, %s",
  async (storage, _, open) => {
    const runtime = await open();
    const [own, other] = [classifier(runtime, 1), classifier(runtime, 2)];
    for (const model of [own, other]) model.bfloat16();
    const optimizer = new SGD(runtime.target, groupsOf(own), { lr: 2 ** -20, storage });
    const push = () =>
      runtime.step(() => {
        for (const parameter of own.parameters()) parameter.sum().backward();
        optimizer.step();
        optimizer.zeroGrad();
      });
    await push();
    const loaded = await other.stateDict();
    own.loadStateDict(loaded);
    const wanted = await valuesOf(other);
    await push();
    expect(farthest(await valuesOf(own), wanted)).toBeLessThan(2 ** -15);
    // Inside of a step, too.
    await runtime.step(() => {
      for (const parameter of own.parameters()) parameter.assign(parameter.mul(2));
      for (const parameter of own.parameters()) parameter.sum().backward();
      optimizer.step();
      optimizer.zeroGrad();
    });
    expect(
      farthest(
        await valuesOf(own),
        wanted.map((value) => 2 * value),
      ),
    ).toBeLessThan(2 ** -14);
  },
);

test("model and optimizer may be loaded in any order, and an average swapped in between", async () => {
  const runtime = cpuRuntime();
  const unbroken = o2(runtime);
  for (let i = 0; i < 3; i++) await step(runtime, unbroken.model, unbroken.optimizer);
  const saved = [await unbroken.model.stateDict(), await unbroken.optimizer.stateDict()] as const;
  const average = new ExponentialMovingAverage(unbroken.optimizer, { decay: 0.5 });
  average.swap();
  average.restore();
  await step(runtime, unbroken.model, unbroken.optimizer);
  const wanted = await unbroken.optimizer.stateDict();
  for (const modelFirst of [true, false]) {
    const { model, optimizer } = o2(runtime, 2);
    await step(runtime, model, optimizer);
    if (modelFirst) model.loadStateDict(saved[0]);
    optimizer.loadStateDict(saved[1]);
    if (!modelFirst) model.loadStateDict(saved[0]);
    await step(runtime, model, optimizer);
    expect((await optimizer.stateDict()).groups).toEqual(wanted.groups);
  }
});

test("a dropped step does not take what was loaded for known", async () => {
  const runtime = cpuRuntime();
  const { model, optimizer } = o2(runtime);
  await step(runtime, model, optimizer);
  for (const parameter of model.parameters()) parameter.assign(parameter.mul(0));
  runtime.dryRun(() => {
    lossOf(model, samples(16, 1)).backward();
    optimizer.step();
  });
  await step(runtime, model, optimizer);
  expect(
    farthest(
      await valuesOf(model),
      (await valuesOf(model)).map(() => 0),
    ),
  ).toBeLessThan(0.02);
});

test("the state dict of an O2 model is 16-bit, as it is stored, or float32, as apex saves it", async () => {
  const { model } = o2(cpuRuntime());
  const [stored, wide] = [await model.stateDict(), await model.stateDict({ dtype: "float32" })];
  expect(new Set(Object.values(stored).map(({ dtype }) => dtype))).toEqual(new Set(["float16"]));
  expect(new Set(Object.values(wide).map(({ dtype }) => dtype))).toEqual(new Set(["float32"]));
  expect(Object.values(wide).map(({ data }) => data)).toEqual(
    Object.values(stored).map(({ data }) => data),
  );
});
