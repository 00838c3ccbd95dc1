import type { Device } from "@halfstep/device";
import type { Runtime } from "@halfstep/tensor";
import type { TrainingData } from "../src/data.js";
import { networkFor } from "../src/model.js";
import { choosePrecision, type PrecisionFlags } from "../src/precision.js";
import type { ImagesRun } from "../src/train.js";

/** A ResNet-20 that learns digits in seconds. */
export const digitsRun = (
  gpu: { readonly runtime: Runtime; readonly device: Device },
  data: TrainingData,
  flags: PrecisionFlags,
): ImagesRun => ({
  ...data,
  ...choosePrecision(flags),
  ...{ ...gpu, seed: 1 },
  // The stem for large images makes it sixteen times less work, and digits still have enough pixels.
  network: networkFor({ arch: "resnet20", width: 16, stem: "imagenet" }, data.view),
  ...{ batchSize: 32, accumulate: 1, epochs: 4, lr: 0.4, momentum: 0.9, weightDecay: 1e-4 },
  ...{ normDecay: false, warmUp: 1, milestones: [3], labelSmoothing: 0, workers: 4, evalEvery: 4 },
});
