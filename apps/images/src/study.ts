// `npm run study -- images`: trains ResNet-20 from several seeds in several precisions.
import type { GradScalerOptions } from "@halfstep/grad-scaler";
import type { Study } from "@halfstep/trainer";
import { openRuntime } from "@halfstep/trainer/cli";
import { mnistDirectory, openTraining } from "./data.js";
import { networkFor } from "./model.js";
import { choosePrecision } from "./precision.js";
import { trainImages } from "./train.js";

interface Variant {
  readonly precision: string;
  readonly scaler?: GradScalerOptions;
  /**
   * Factor of the loss. Rates grow and weight decay shrinks by the same factor, so that exact arithmetic would give equal
   * results. In float16 the gradients are too small unless the loss is scaled.
   */
  readonly lossWeight?: number;
}

const tiny = 2 ** -16;

const variants: Readonly<Record<string, Variant>> = {
  float32: { precision: "float32" },
  float16: { precision: "float16" },
  bfloat16: { precision: "bfloat16" },
  "float16 with loss × 2⁻¹⁶": {
    ...{ precision: "float16", lossWeight: tiny, scaler: { initScale: 2 ** 24 } },
  },
  "float16 with loss × 2⁻¹⁶ unscaled": {
    ...{ precision: "float16", lossWeight: tiny, scaler: { enabled: false } },
  },
};

const study: Study = {
  app: "images",
  metric: { name: "top-1 accuracy on MNIST's test images", unit: "%", better: "max" },
  variants: Object.keys(variants),
  seeds: 3,
  async run(name, seed) {
    const variant = variants[name];
    if (!variant) throw new RangeError(`there is no variant ${JSON.stringify(name)}`);
    const { lossWeight = 1 } = variant;
    const { runtime, device, close } = await openRuntime({ device: "gpu" });
    const data = await openTraining(mnistDirectory(), { cropScale: 1, augment: true });
    const chosen = choosePrecision({ precision: variant.precision });
    const result = await trainImages({
      ...data,
      ...{ recipe: chosen.recipe, scaler: variant.scaler ?? chosen.scaler },
      ...{ runtime, device, seed, lossWeight },
      // MNIST's files have no order.
      train: { ...data.train, count: 8000 },
      network: networkFor({ arch: "resnet20", width: 16, stem: "imagenet" }, data.view),
      ...{ batchSize: 64, accumulate: 1, epochs: 3, evalEvery: 3, workers: 4 },
      ...{ lr: 0.4 / lossWeight, momentum: 0.9, weightDecay: 1e-4 * lossWeight, normDecay: true },
      ...{ warmUp: 1, milestones: [2], labelSmoothing: 0 },
    });
    close();
    if (!result) throw new Error("training ended early, though nothing stopped it");
    const { test, wallSeconds, peakBytes, skippedSteps } = result.summary;
    return {
      ...{ metric: 100 * (test.accuracy ?? Number.NaN), loss: test.loss },
      ...{ wallSeconds, peakBytes, skippedSteps },
    };
  },
};

export default study;
