import { recipeOf, withRecipe } from "@halfstep/autocast";
import { BertForSequenceClassification, GPT, ResNet } from "@halfstep/models";
import type { Module } from "@halfstep/nn";
import { type OnnxOptions, toOnnx } from "@halfstep/onnx";
import { cpuRuntime, noGrad, type Tensor } from "@halfstep/tensor";
import { afterAll, expect, test } from "vitest";
import { openPeers } from "./open-peers.js";

// Exported models have the same logits in ONNX Runtime's WebAssembly, in a page. Sums of float16 are float32 there, as they are here.

const peers = await openPeers();
afterAll(() => peers.close());
const runtime = cpuRuntime();

const tokens = (shape: readonly number[]): Tensor =>
  runtime.tensor(
    Uint32Array.from({ length: shape.reduce((a, b) => a * b, 1) }, (_, i) => (7 * i + 3) % 40),
    shape,
  );
const waves = Float32Array.from({ length: 2 * 12 * 12 * 3 }, (_, i) => Math.sin(i + 1));

const models: Readonly<Record<string, readonly [Module, Tensor]>> = {
  ResNet: [
    new ResNet(runtime, {
      ...{ seed: 3, layers: [1, 1, 1], width: 4, classes: 5, shortcut: "padding", stem: "cifar" },
    }),
    runtime.tensor(waves, [2, 12, 12, 3]),
  ],
  BERT: [
    new BertForSequenceClassification(runtime, {
      ...{ seed: 4, vocabSize: 50, hiddenSize: 16, numHiddenLayers: 2, numAttentionHeads: 2 },
      ...{ intermediateSize: 24, maxPositionEmbeddings: 12, numLabels: 3 },
    }),
    tokens([3, 7]),
  ],
  "GPT-2": [
    new GPT(runtime, {
      ...{ seed: 5, vocabSize: 40, blockSize: 9, nLayer: 2, nHead: 2, nEmbd: 16, dropout: 0 },
    }),
    tokens([3, 9]),
  ],
};

/** The largest difference between a model's logits and those of its file in the page, in terms of the largest logit. */
async function error([model, x]: readonly [Module, Tensor], precision: "O0" | "O1") {
  model.eval();
  const recipe = recipeOf(precision);
  const forward = (): Tensor => model.forward(x as never) as Tensor;
  const logits = await runtime.step(() => noGrad(() => withRecipe(recipe, forward)));
  const wanted = await logits.toArray();
  const options: OnnxOptions = { inputNames: ["input"], recipe, float32Outputs: true };
  const file = Buffer.from(await toOnnx(model, [x], options)).toString("base64");
  const type = x.dtype === "uint32" ? "int64" : "float32";
  const input = { type, values: [...(await x.toArray())], dims: x.shape };
  const given = JSON.stringify({ input });
  const { found, messages } = await peers.evaluate(`shares.onnxLogits("${file}", ${given})`);
  expect(found, messages.join("\n")).toHaveLength(wanted.length);
  const largest = Math.max(...wanted.map(Math.abs));
  const differences = (found as number[]).map((value, i) =>
    Math.abs(value - (wanted[i] as number)),
  );
  return Math.max(...differences) / largest;
}

test.each(Object.entries(models))("%s", async (_, each) => {
  expect(await error(each, "O0")).toBeLessThan(2e-6);
  expect(await error(each, "O1")).toBeLessThan(4e-3);
});
