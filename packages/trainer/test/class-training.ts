import { GradScaler } from "@halfstep/grad-scaler";
import { AdamW } from "@halfstep/optim";
import {
  ampPrimitives,
  cpuRuntime,
  flatten,
  type Runtime,
  type Storage,
  type Tensor,
} from "@halfstep/tensor";
import type { StepMetrics } from "../src/summary.js";
import { type TrainOptions, type TrainResult, train } from "../src/train.js";
import { classifier, lossOf, type Samples, sampleBatches } from "./classes.js";

/** A classifier on the CPU, and its training. */
export interface ClassTraining {
  readonly runtime: Runtime;
  readonly model: ReturnType<typeof classifier>;
  readonly optimizer: AdamW<Storage>;
  readonly scaler: GradScaler<Storage, Tensor>;
  /** The steps so far. */
  readonly told: StepMetrics[];
  run(options?: Partial<TrainOptions<Samples>>): Promise<TrainResult>;
  /** Those of the first layer. */
  weights(): Promise<Float32Array>;
}

/** @param scaling options of the scaler */
export const training = (
  scaling: ConstructorParameters<typeof GradScaler>[1] = {},
): ClassTraining => {
  const runtime = cpuRuntime();
  const model = classifier(runtime);
  const optimizer = new AdamW(runtime.target, flatten(model.parameters()), { lr: 0.01 });
  const scaler = new GradScaler(ampPrimitives(runtime), { outcomeSchedule: false, ...scaling });
  const told: StepMetrics[] = [];
  const run = (options: Partial<TrainOptions<Samples>> = {}): Promise<TrainResult> =>
    train<Samples>({
      ...{ runtime, precision: "float32", optimizer, scaler, epochs: 1, lr: () => 0.01 },
      loss: (batch) => lossOf(model, batch),
      batches: (epoch) => sampleBatches(5, 16, epoch),
      onStep: (metrics) => told.push(metrics),
      ...options,
    });
  const weights = async (): Promise<Float32Array> =>
    Float32Array.from((await model.layers[0]?.weight.toArray()) ?? []);
  return { runtime, model, optimizer, scaler, told, run, weights };
};
