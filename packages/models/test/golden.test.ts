import { requestTestDevice } from "@halfstep/device/testing";
import {
  type Layer,
  loadTorchStateDict,
  type Module,
  type StateDict,
  torchStateDict,
} from "@halfstep/nn";
import { cpuRuntime, gpuRuntime, noGrad, type Runtime, type Tensor } from "@halfstep/tensor";
import { expect, test } from "vitest";
import {
  BertForMaskedLM,
  BertForSequenceClassification,
  BertForTokenClassification,
  GPT,
  resnet18,
  resnet20,
  resnet50,
  UNet,
} from "../src/index.js";
import { channelsFirst, channelsLast, distance, readCheckpoint, tensorOf } from "./checkpoints.js";

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

const images: readonly [string, (runtime: Runtime) => Layer][] = [
  ["resnet18", (runtime) => resnet18(runtime, { seed, width: 2, classes: 10 })],
  ["resnet20", (runtime) => resnet20(runtime, { seed, width: 2 })],
  [
    "resnet50",
    (runtime) => resnet50(runtime, { seed, width: 2, classes: 10, layers: [2, 1, 1, 1] }),
  ],
  ["unet", (runtime) => new UNet(runtime, { seed, width: 2 })],
  ["unet-bilinear", (runtime) => new UNet(runtime, { seed, width: 2, bilinear: true })],
];

for (const [name, make] of images)
  test.each(runtimes)(`${name} computes what torch's does: %s`, async (_, open) => {
    const { state, golden } = readCheckpoint(name);
    const runtime = await open();
    const model = make(runtime);
    const keys = loadTorchStateDict(model, state);
    expect(keys).toEqual({ missing: [], unexpected: [], misshapen: [] });
    expect(await notGivenBack(model, state)).toEqual([]);
    const x = channelsLast(tensorOf(runtime, golden.input as never));
    const run = (): Tensor => noGrad(() => channelsFirst(model.forward(x)));
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
  expect(loadTorchStateDict(model, state)).toEqual({ missing: [], unexpected: [], misshapen: [] });
  expect(await notGivenBack(model, state)).toEqual([]);
  const logits = noGrad(() => model.forward(tensorOf(runtime, golden.tokens as never)));
  expect(await distance(logits, golden.logits)).toBeLessThan(tolerance);
});

const bertOptions = {
  seed,
  vocabSize: 19,
  hiddenSize: 12,
  numHiddenLayers: 2,
  numAttentionHeads: 3,
  intermediateSize: 20,
  maxPositionEmbeddings: 9,
};
const berts: readonly [
  string,
  (
    runtime: Runtime,
  ) => BertForMaskedLM | BertForSequenceClassification | BertForTokenClassification,
][] = [
  ["bert-masked-lm", (runtime) => new BertForMaskedLM(runtime, bertOptions)],
  [
    "bert-sequence",
    (runtime) => new BertForSequenceClassification(runtime, { ...bertOptions, numLabels: 3 }),
  ],
  [
    "bert-token",
    (runtime) => new BertForTokenClassification(runtime, { ...bertOptions, numLabels: 4 }),
  ],
];

for (const [name, make] of berts)
  test.each(runtimes)(`${name} computes what transformers' does: %s`, async (_, open) => {
    const { state, golden } = readCheckpoint(name);
    const runtime = await open();
    const model = make(runtime).eval();
    expect(loadTorchStateDict(model, state)).toEqual({
      missing: [],
      unexpected: [],
      misshapen: [],
    });
    expect(await notGivenBack(model, state)).toEqual([]);
    const [tokens, attentionMask, tokenTypeIds] = ["tokens", "mask", "types"].map((input) =>
      tensorOf(runtime, golden[input] as never),
    ) as [Tensor, Tensor, Tensor];
    const [plain, masked] = noGrad(() => [
      model.forward(tokens),
      model.forward(tokens, { attentionMask, tokenTypeIds }),
    ]) as [Tensor, Tensor];
    expect(await distance(plain, golden.plain)).toBeLessThan(tolerance);
    expect(await distance(masked, golden.logits)).toBeLessThan(tolerance);
  });
