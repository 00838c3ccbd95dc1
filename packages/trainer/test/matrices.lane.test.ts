import { autocast } from "@halfstep/autocast";
import { requestDevice } from "@halfstep/device/node";
import { GradScaler } from "@halfstep/grad-scaler";
import { DigitsCnn, GPT } from "@halfstep/models";
import type { Module } from "@halfstep/nn";
import { AdamW } from "@halfstep/optim";
import {
  ampPrimitives,
  crossEntropy,
  flatten,
  gpuRuntime,
  type Runtime,
  type Tensor,
} from "@halfstep/tensor";
import { expect, test } from "vitest";

// Training in float16 on a driver that multiplies matrices, as a GPU of no known vendor, beside the same driver as what it is: the CPU, whose
// products go by rows. `npm run lanes` runs this.

type Model = Module & { forward(x: Tensor): Tensor };
interface Example {
  readonly model: Model;
  readonly input: Tensor;
  readonly labels: Uint32Array;
}

const waves = (length: number): Float32Array =>
  Float32Array.from({ length }, (_, i) => Math.sin(i * 1.7));

const examples: Readonly<Record<string, (runtime: Runtime) => Example>> = {
  "a GPT": (runtime) => ({
    model: new GPT(runtime, {
      ...{ seed: 0, vocabSize: 64, blockSize: 32 },
      ...{ nLayer: 1, nHead: 2, nEmbd: 64, dropout: 0 },
    }),
    input: runtime.tensor(
      Uint32Array.from({ length: 128 }, (_, i) => (i * 7) % 64),
      [4, 32],
    ),
    labels: Uint32Array.from({ length: 128 }, (_, i) => (i * 7 + 7) % 64),
  }),
  "a CNN": (runtime) => ({
    model: new DigitsCnn(runtime, { seed: 0 }),
    input: runtime.tensor(waves(8 * 784), [8, 28, 28, 1]),
    labels: Uint32Array.from({ length: 8 }, (_, i) => i),
  }),
};

/** Losses of ten steps of automatic mixed precision, and the programs' text. */
async function losses(make: (runtime: Runtime) => Example, hardwareClass?: string) {
  const device = await requestDevice(hardwareClass === undefined ? {} : { hardwareClass });
  const runtime = gpuRuntime(device);
  const { model, input, labels } = make(runtime);
  const optimizer = new AdamW(runtime.target, flatten(model.parameters()), { lr: 3e-3 });
  const scaler = new GradScaler(ampPrimitives(runtime));
  const found: number[] = [];
  for (let step = 0; step < 10; step++) {
    using loss = await runtime.step(() => {
      const loss = autocast({ dtype: "float16" }, () => {
        const scores = model.forward(input);
        return crossEntropy(scores.reshape([labels.length, -1]), runtime.tensor(labels));
      });
      scaler.scale(loss).backward();
      scaler.step(optimizer);
      scaler.update();
      optimizer.zeroGrad();
      return loss;
    });
    found.push(await loss.item());
  }
  const { tier, subgroupSize, hardware } = device.capabilities;
  const matrices = (runtime.lastPlan?.launches ?? []).filter(({ launch: { kernel, bindings } }) =>
    kernel
      .program({ tier, subgroupSize, hardware, bindings })
      .code.includes("subgroupMatrixMultiplyAccumulate"),
  ).length;
  device.destroy();
  return { found, matrices };
}

test.each([
  // Query, key and value in one product, output, two of the MLP and the head; two gradients of each; attention and its gradients.
  ["a GPT", 15],
  // Two convolutions and their gradients, but for the gradient by 16 channels. The first has one channel, the classifier ten columns.
  ["a CNN", 5],
])("%s trains in float16 as by rows", async (name, least) => {
  const make = examples[name] as (runtime: Runtime) => Example;
  const asGpu = await losses(make, "a GPU");
  const asCpu = await losses(make);
  expect(asGpu.matrices).toBeGreaterThanOrEqual(least);
  expect(asCpu.matrices).toBe(0);
  expect(asGpu.found.at(-1)).toBeLessThan(0.8 * (asGpu.found[0] as number));
  // float16 activations differ in their last bit, which ten steps of Adam make larger.
  const [first = 0] = asCpu.found;
  const differences = asCpu.found.map((loss, i) => Math.abs(loss - (asGpu.found[i] as number)));
  expect(Math.max(...differences)).toBeLessThan(0.01 * first);
});
