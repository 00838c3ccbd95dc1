import { LeftOutError } from "@halfstep/device";
import type * as training from "./batch-norm-training.js";

// Stands for `batch-norm-training.ts` in builds with the condition `@halfstep/inference-only`.

export type { BatchNormResult, BatchNormTrainingOptions } from "./batch-norm-training.js";

export const batchNorm: typeof training.batchNorm = () => {
  throw new LeftOutError(
    "@halfstep/inference-only",
    "batch norm in training mode",
    "call eval() of the model",
  );
};
