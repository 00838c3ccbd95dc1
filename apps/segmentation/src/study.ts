// `npm run study -- segmentation`: land and water in every precision from several seeds, and float16 where gradients are small.
import type { Study } from "@halfstep/trainer";
import { openRuntime } from "@halfstep/trainer/cli";
import { readEarth } from "./earth.js";
import { headline } from "./scores.js";
import { type SegmentationRun, trainUNet } from "./train.js";

type Variant = Pick<SegmentationRun, "precision" | "lossWeight" | "initScale" | "scaling">;

/** A loss so small that gradients in float16 vanish unless it is scaled. */
const lossWeight = 2 ** -14;

const variants: Readonly<Record<string, Variant>> = {
  float32: { precision: "float32" },
  float16: { precision: "float16" },
  bfloat16: { precision: "bfloat16" },
  "float16 on a tiny loss": { precision: "float16", lossWeight, initScale: 2 ** 24 },
  "float16 on a tiny loss without scaling": { precision: "float16", lossWeight, scaling: false },
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
    const { runtime, device, close } = await openRuntime();
    const trained = await trainUNet({
      ...variant,
      runtime,
      device,
      scenes,
      seed,
      width: 8,
      bilinear: false,
      tile: 64,
      batchSize: 8,
      epochs: 25,
      optimizer: "adamw",
      lr: 1e-2,
      schedule: "cosine",
      weightDecay: 1e-2,
      clip: 1,
    });
    close();
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
