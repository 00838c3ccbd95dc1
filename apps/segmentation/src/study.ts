// `npm run study -- segmentation`: land and water in every precision from several seeds, and float16 where gradients are small.
import { requestDevice } from "@halfstep/device/node";
import { gpuRuntime } from "@halfstep/tensor";
import type { Study } from "@halfstep/trainer";
import { readEarth } from "./earth.js";
import { headline } from "./scores.js";
import { type SegmentationRun, trainUNet } from "./train.js";

type Variant = Pick<SegmentationRun, "precision" | "lossWeight" | "scaling">;

/** With a loss this small, gradients in float16 are lost without scaling. */
const lossWeight = 2 ** -10;

const variants: Readonly<Record<string, Variant>> = {
  float32: { precision: "float32" },
  float16: { precision: "float16" },
  bfloat16: { precision: "bfloat16" },
  "float16, loss × 2⁻¹⁰": { precision: "float16", lossWeight },
  "float16, loss × 2⁻¹⁰, not scaled": { precision: "float16", lossWeight, scaling: false },
};

const study: Study = {
  app: "segmentation",
  metric: { name: "land IoU on held-out longitudes", unit: "%", better: "max" },
  variants: Object.keys(variants),
  seeds: 3,
  async run(name, seed) {
    const variant = variants[name];
    if (!variant) throw new RangeError(`there is no variant ${JSON.stringify(name)}`);
    const scenes = await readEarth();
    const device = await requestDevice();
    const trained = await trainUNet({
      ...variant,
      runtime: gpuRuntime(device),
      device,
      scenes,
      seed,
      width: 8,
      bilinear: true,
      tile: 64,
      batchSize: 8,
      epochs: 20,
      optimizer: "adamw",
      lr: 1e-2,
      schedule: "cosine",
      weightDecay: 1e-2,
      clip: 1,
    });
    device.destroy();
    if (!trained) throw new Error("training ended early, though nothing stopped it");
    const { judged, summary } = trained;
    return {
      metric: 100 * headline(scenes.classes, judged).value,
      loss: judged.loss,
      wallSeconds: summary.wallSeconds,
      peakBytes: summary.peakBytes,
      skippedSteps: summary.skippedSteps,
      dice: judged.dice,
    };
  },
};

export default study;
