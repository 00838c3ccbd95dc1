import type { ImageSplits } from "@halfstep/data/node";
import { requestDevice } from "@halfstep/device/node";
import { gpuRuntime } from "@halfstep/tensor";
import type { Precision, StudyOutcome } from "@halfstep/trainer";
import { type DigitsRun, firstOf, trainDigits } from "./digits.js";

/** A way to train, to be compared with float32 from the same seed. */
export interface Variant {
  readonly name: string;
  readonly precision: Precision;
  readonly weights?: DigitsRun["weights"];
}

const float32: Variant = { name: "float32", precision: "float32" };

/** The precisions that must do as well as float32. */
export const mixedPrecisions: readonly Variant[] = [
  { name: "float16", precision: "float16" },
  { name: "bfloat16", precision: "bfloat16" },
];

/** The control that a comparison must be able to distinguish. */
export const withoutMasters: Variant = {
  name: "bfloat16 without masters",
  precision: "bfloat16",
  weights: "bfloat16",
};

export const variants: readonly Variant[] = [float32, ...mixedPrecisions, withoutMasters];

export type ParityOptions = Pick<DigitsRun, "epochs" | "batchSize" | "lr"> & {
  readonly data: ImageSplits;
  /** Training images. Tests use all test images. */
  readonly limit: number;
};

/** Trains one variant from one seed on a device of its own. The metric is accuracy on the test images, in percent. */
export async function trainVariant(
  { precision, weights = "float32" }: Variant,
  seed: number,
  { data, limit, ...options }: ParityOptions,
): Promise<StudyOutcome> {
  const device = await requestDevice();
  const summary = await trainDigits({
    ...options,
    runtime: gpuRuntime(device),
    device,
    precision,
    weights,
    train: firstOf(data.train, limit),
    test: data.test,
    seed,
    initScale: 65536,
  });
  device.destroy();
  if (!summary) throw new Error("training ended early, though nothing stopped it");
  const { test, wallSeconds, peakBytes, skippedSteps } = summary;
  return {
    metric: 100 * (test.accuracy ?? Number.NaN),
    loss: test.loss,
    wallSeconds,
    peakBytes,
    skippedSteps,
  };
}
