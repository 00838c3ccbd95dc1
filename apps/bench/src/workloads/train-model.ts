import { GradScaler } from "@halfstep/grad-scaler";
import type { Module } from "@halfstep/nn";
import { Adam } from "@halfstep/optim";
import { ampPrimitives, crossEntropy, flatten, type Tensor } from "@halfstep/tensor";
import { inPrecision, type Place, training } from "../lanes/halfstep.js";
import type { Precision, Prepared } from "../lanes/prepared.js";

/** A classifier, its training data and its settings. */
export interface Classifier {
  readonly model: Module & { forward(x: Tensor): Tensor };
  readonly input: Tensor;
  readonly labels: Uint32Array;
  readonly precision: Precision;
  readonly lr: number;
}

/** One step of AMP training with Adam as a user writes it: autocast, and loss scaling where the precision is float16. */
export function trainModel(
  place: Place,
  { model, input, labels, precision, lr }: Classifier,
): Prepared {
  const { runtime } = place;
  const optimizer = new Adam(runtime.target, flatten(model.parameters()), { lr });
  const scaler = new GradScaler(ampPrimitives(runtime), {
    enabled: precision === "float16",
    // Outcomes are never read.
    outcomeSchedule: false,
  });
  const target = runtime.tensor(labels);
  return training(place, () => {
    const loss = inPrecision(precision, () => crossEntropy(model.forward(input), target));
    scaler.scale(loss).backward();
    scaler.step(optimizer);
    scaler.update();
    optimizer.zeroGrad();
    return loss;
  });
}
