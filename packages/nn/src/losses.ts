import { type CrossEntropyOptions, crossEntropy, ShapeError, type Tensor } from "@halfstep/tensor";
import { Module } from "./module.js";

export type LossOptions = CrossEntropyOptions;

/** Mean of (prediction − target)², computed in float32 whatever the dtypes are. */
export function mseLoss(
  prediction: Tensor,
  target: Tensor,
  { reduction = "mean" }: LossOptions = {},
): Tensor {
  if (prediction.shape.join() !== target.shape.join())
    throw new ShapeError(
      `mseLoss: the prediction has shape [${prediction.shape}], the target [${target.shape}]; they must be equal, or a broadcast would count some of them twice`,
    );
  const squares = prediction.to("float32").sub(target.to("float32")).square();
  if (reduction === "none") return squares;
  return reduction === "mean" ? squares.mean() : squares.sum();
}

/** {@link mseLoss} as a module. */
export class MSELoss extends Module {
  readonly options: LossOptions;

  constructor(options: LossOptions = {}) {
    super();
    this.options = options;
  }

  forward(prediction: Tensor, target: Tensor): Tensor {
    return mseLoss(prediction, target, this.options);
  }
}

/** Cross-entropy of logits [rows, classes] against labels [rows] (uint32), in float32. */
export class CrossEntropyLoss extends Module {
  readonly options: LossOptions;

  constructor(options: LossOptions = {}) {
    super();
    this.options = options;
  }

  forward(logits: Tensor, labels: Tensor): Tensor {
    return crossEntropy(logits, labels, this.options);
  }
}
