import type { Tensor } from "../../tensor/tensor.js";

/** What becomes of the losses: their mean (of those that count), their sum, or each of them. */
export type Reduction = "mean" | "sum" | "none";

/** Options of all losses. */
export interface ReductionOptions {
  /** Default "mean". */
  readonly reduction?: Reduction;
}

/** The mean, the sum or all of some losses. With `count` the mean is their sum divided by it. */
export function reduced(losses: Tensor, reduction: Reduction = "mean", count?: Tensor): Tensor {
  if (reduction === "none") return losses;
  if (reduction === "sum") return losses.sum();
  return count ? losses.sum().div(count) : losses.mean();
}
