import type { Tensor } from "../../tensor/tensor.js";
import { mean, sum } from "../sums.js";

/** The reduction of losses: the mean of those that count, the sum, or none. */
export type Reduction = "mean" | "sum" | "none";

/** Options of all losses. */
export interface ReductionOptions {
  /** Default "mean". */
  readonly reduction?: Reduction;
}

/** Reduces losses. With `count` the mean is their sum divided by it. */
export function reduced(losses: Tensor, reduction: Reduction = "mean", count?: Tensor): Tensor {
  if (reduction === "none") return losses;
  if (reduction === "sum") return sum(losses);
  return count ? sum(losses).div(count) : mean(losses);
}
