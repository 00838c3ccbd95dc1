import type { Module } from "@halfstep/nn";
import type { Runtime } from "@halfstep/tensor";
import type { ClassificationLoss } from "@halfstep/trainer";

/** What changes the loss of a learner; the weights of classes as numbers. */
export interface LearnerLoss extends Omit<ClassificationLoss, "weight"> {
  /** [classes]. Default: all examples count alike. */
  readonly weights?: Float32Array | undefined;
}

/** The options of a batch's loss. Weights are for training alone: losses of tests can be compared with those without. */
export const lossOptions = (
  { runtime, model }: { readonly runtime: Runtime; readonly model: Module },
  { weights, labelSmoothing, focal }: LearnerLoss,
): ClassificationLoss => ({
  ...{ labelSmoothing, focal },
  ...(weights && model.isTraining && { weight: runtime.tensor(weights) }),
});
