import { gatherImages, gatherLabels, mnistNormalization, permutation } from "@halfstep/data";
import { requestTestDevice } from "@halfstep/device/testing";
import { GradScaler, type GradScalerOptions } from "@halfstep/grad-scaler";
import { DigitsCnn } from "@halfstep/models";
import { AdamW } from "@halfstep/optim";
import { ampPrimitives, crossEntropy, flatten, gpuRuntime, type Runtime } from "@halfstep/tensor";
import { evaluate, type Precision, train } from "@halfstep/trainer";
import { expect, test } from "vitest";
import { realDigits } from "./mnist.js";

const steps = 100;
const batchSize = 64;
const testCount = 1000;

interface Batch {
  readonly images: Float32Array;
  readonly labels: Uint32Array;
}

const batchOf = (set: typeof realDigits.train, indices: Uint32Array): Batch => ({
  images: gatherImages(set, indices, mnistNormalization),
  labels: gatherLabels(set, indices),
});

/** Test accuracy in percent after 100 steps on a loss that is 2⁻¹⁶ times the usual one. */
async function accuracyWithTinyLoss(
  runtime: Runtime,
  precision: Precision,
  scaling: GradScalerOptions,
): Promise<number> {
  const model = new DigitsCnn(runtime, { seed: 0 });
  const optimizer = new AdamW(runtime.target, flatten(model.parameters()), { lr: 3e-3 });
  const logits = ({ images, labels }: Batch) =>
    model.forward(runtime.tensor(images, [labels.length, 28, 28, 1]));
  const order = permutation(realDigits.train.count, 0, 0);
  await train<Batch>({
    runtime,
    precision,
    optimizer,
    scaler: new GradScaler(ampPrimitives(runtime), scaling),
    epochs: 1,
    batches: () =>
      Array.from({ length: steps }, (_, i) =>
        batchOf(realDigits.train, order.subarray(i * batchSize, (i + 1) * batchSize)),
      ),
    loss: (batch) => crossEntropy(logits(batch), runtime.tensor(batch.labels)).mul(2 ** -16),
    lr: () => 3e-3,
  });
  model.eval();
  const { accuracy } = await evaluate<Batch>({
    runtime,
    precision,
    logits,
    labels: ({ labels }) => labels,
    batches: [
      batchOf(
        realDigits.test,
        Uint32Array.from({ length: testCount }, (_, i) => i),
      ),
    ],
  });
  return 100 * accuracy;
}

test("a loss of 2⁻¹⁶ trains in float16 with scaling and not without", {
  timeout: 300_000,
}, async () => {
  const runtime = gpuRuntime(await requestTestDevice());
  const reference = await accuracyWithTinyLoss(runtime, "float32", { enabled: false });
  const scaled = await accuracyWithTinyLoss(runtime, "float16", {});
  const unscaled = await accuracyWithTinyLoss(runtime, "float16", { enabled: false });
  console.log({ reference, scaled, unscaled });
  expect(reference).toBeGreaterThan(90);
  expect(scaled).toBeGreaterThan(reference - 2);
  expect(unscaled).toBeLessThan(reference - 10);
});
