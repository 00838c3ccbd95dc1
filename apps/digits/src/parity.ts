import type { ImageSplits } from "@halfstep/data/node";
import { requestDevice } from "@halfstep/device/node";
import { gpuRuntime } from "@halfstep/tensor";
import type { Precision } from "@halfstep/trainer";
import { type DigitsRun, firstOf, trainDigits } from "./digits.js";

/** A way to train, to be compared with float32 from the same seed. */
export interface Variant {
  readonly name: string;
  readonly precision: Precision;
  readonly weights?: DigitsRun["weights"];
}

export const float32: Variant = { name: "float32", precision: "float32" };

/** The precisions that must do as well as float32. */
export const mixedPrecisions: readonly Variant[] = [
  { name: "float16", precision: "float16" },
  { name: "bfloat16", precision: "bfloat16" },
];

/** What a comparison must be able to tell from them. */
export const withoutMasters: Variant = {
  name: "bfloat16 without masters",
  precision: "bfloat16",
  weights: "bfloat16",
};

/** One trained model. */
export interface Outcome {
  readonly variant: string;
  readonly seed: number;
  /** On the test images: percent, and nats. */
  readonly accuracy: number;
  readonly loss: number;
}

export type ParityOptions = Pick<DigitsRun, "epochs" | "batchSize" | "lr"> & {
  readonly data: ImageSplits;
  /** Training images. Tests use all test images. */
  readonly limit: number;
};

/** Trains one variant from one seed on a device of its own. */
export async function trainVariant(
  { name, precision, weights = "float32" }: Variant,
  seed: number,
  { data, limit, ...options }: ParityOptions,
): Promise<Outcome> {
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
  return { variant: name, seed, accuracy: 100 * summary.test.accuracy, loss: summary.test.loss };
}

/** Mean difference from float32 over the seeds that both have, paired by seed. */
export function meanDifference(
  outcomes: readonly Outcome[],
  variant: string,
  of: "accuracy" | "loss",
): number {
  const baseline = new Map(
    outcomes.filter((o) => o.variant === float32.name).map((o) => [o.seed, o[of]]),
  );
  const differences = outcomes
    .filter((o) => o.variant === variant && baseline.has(o.seed))
    .map((o) => o[of] - (baseline.get(o.seed) as number));
  return differences.reduce((sum, d) => sum + d, 0) / differences.length;
}
