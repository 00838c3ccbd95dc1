import { requestTestDevice } from "@halfstep/device/testing";
import { loadTorchStateDict, type Module, type StateDict, torchStateDict } from "@halfstep/nn";
import { cpuRuntime, gpuRuntime, noGrad, type Runtime, type Tensor } from "@halfstep/tensor";
import { expect, test } from "vitest";
import { GPT, type ResNet, resnet18, resnet20, resnet50 } from "../src/index.js";
import { channelsLast, distance, readCheckpoint, tensorOf } from "./checkpoints.js";

const runtimes: readonly [string, () => Promise<Runtime>][] = [
  ["CPU", async () => cpuRuntime()],
  ["GPU", async () => gpuRuntime(await requestTestDevice())],
];

const seed = 1;

/** Within float32's errors, as far as sums of different order go. */
const tolerance = 1e-4;

/** The names of the state that the model gives back with another shape or other values than it had. */
async function notGivenBack(model: Module, state: StateDict): Promise<readonly string[]> {
  const back = await torchStateDict(model);
  return Object.keys(state).filter((name) => {
    const [ours, theirs] = [back[name], state[name]];
    const isSame =
      ours?.shape.join() === theirs?.shape.join() && ours?.data.join() === theirs?.data.join();
    return !isSame && !name.endsWith("num_batches_tracked");
  });
}

const images: readonly [string, (runtime: Runtime) => ResNet][] = [
  ["resnet18", (runtime) => resnet18(runtime, { seed, width: 2, classes: 10 })],
  ["resnet20", (runtime) => resnet20(runtime, { seed, width: 2 })],
  [
    "resnet50",
    (runtime) => resnet50(runtime, { seed, width: 2, classes: 10, layers: [2, 1, 1, 1] }),
  ],
];

for (const [name, make] of images)
  test.each(runtimes)(`${name} computes what torchvision's does: %s`, async (_, open) => {
    const { state, golden } = readCheckpoint(name);
    const runtime = await open();
    const model = make(runtime);
    const keys = loadTorchStateDict(model, state);
    expect(keys).toEqual({ missing: [], unexpected: [] });
    expect(await notGivenBack(model, state)).toEqual([]);
    const x = channelsLast(tensorOf(runtime, golden.input as never));
    const run = (): Tensor => noGrad(() => model.forward(x));
    expect(await distance(model.eval() && run(), golden.evaluated)).toBeLessThan(tolerance);
    expect(await distance(model.train() && run(), golden.trained)).toBeLessThan(tolerance);
  });

test.each(runtimes)("GPT computes what transformers' GPT-2 does: %s", async (_, open) => {
  const { state, golden } = readCheckpoint("gpt2");
  const runtime = await open();
  const model = new GPT(runtime, {
    seed,
    vocabSize: 17,
    blockSize: 10,
    nEmbd: 12,
    nLayer: 2,
    nHead: 3,
  });
  expect(loadTorchStateDict(model, state)).toEqual({ missing: [], unexpected: [] });
  expect(await notGivenBack(model, state)).toEqual([]);
  const logits = noGrad(() => model.forward(tensorOf(runtime, golden.tokens as never)));
  expect(await distance(logits, golden.logits)).toBeLessThan(tolerance);
});
