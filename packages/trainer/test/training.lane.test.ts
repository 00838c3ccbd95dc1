import { autocast } from "@halfstep/autocast";
import { requestTestDevice } from "@halfstep/device/testing";
import { GradScaler } from "@halfstep/grad-scaler";
import { DigitsCnn, GPT } from "@halfstep/models";
import type { Module } from "@halfstep/nn";
import { AdamW } from "@halfstep/optim";
import {
  ampPrimitives,
  cpuRuntime,
  crossEntropy,
  flatten,
  gpuRuntime,
  type Runtime,
  type Tensor,
} from "@halfstep/tensor";
import { expect, test } from "vitest";

// Automatic mixed precision on the driver of a lane, beside the CPU runner. `npm run lanes` runs this.

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

/** Losses of ten steps in float16. */
async function losses(
  runtime: Runtime,
  make: (runtime: Runtime) => Example,
): Promise<readonly number[]> {
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
  return found;
}

const device = await requestTestDevice();
const { tier, subgroupSize, hardware } = device.capabilities;
const hasMatrices = hardware.class !== "software" && hardware.subgroupMatrices.length > 0;

/** Launches of the last plan that multiply matrices in hardware. */
const matrixLaunches = (runtime: Runtime): number =>
  (runtime.lastPlan?.launches ?? []).filter(({ launch: { kernel, bindings } }) =>
    kernel
      .program({ tier, subgroupSize, hardware, bindings })
      .code.includes("subgroupMatrixMultiplyAccumulate"),
  ).length;

test.each([
  // Query, key and value in one product, output, two of the MLP and the head; two gradients of each; attention and its gradients.
  ["a GPT", 15, 0.001],
  // Two convolutions and their gradients, but for the gradient by 16 channels. The first has one channel, the classifier ten columns.
  ["a CNN", 5, 0.02],
])("%s trains in float16 as on the CPU runner", async (name, least, tolerance) => {
  const make = examples[name] as (runtime: Runtime) => Example;
  const runtime = gpuRuntime(device);
  const found = await losses(runtime, make);
  const expected = await losses(cpuRuntime(), make);
  if (hasMatrices) expect(matrixLaunches(runtime)).toBeGreaterThanOrEqual(least);
  else expect(matrixLaunches(runtime)).toBe(0);
  // All engines add in float32, in other orders than the CPU runner. float16 activations then differ in their last bit. Ten steps of Adam
  // make that larger, and most so after batch norm of eight images: 0.009 by rows, 0.003 by matrices.
  const [first = 0] = expected;
  const difference = Math.max(...expected.map((loss, i) => Math.abs(loss - (found[i] as number))));
  console.log(`note: ${name}: losses to ${found.at(-1)}, ${difference / first} of the first apart`);
  expect(difference).toBeLessThan(tolerance * first);
  expect(found.at(-1)).toBeLessThan(0.8 * (found[0] as number));
});
