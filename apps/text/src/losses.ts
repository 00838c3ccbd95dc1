import { crossEntropy, type Tensor } from "@halfstep/tensor";

export interface ClassificationLoss {
  /** Share of the target that is spread over all classes (Szegedy et al. 2016). Default 0. */
  readonly labelSmoothing?: number | undefined;
  /**
   * γ of the focal loss (Lin et al. 2017), at least 1, which lowers the weight of examples that are already classified well.
   * Default 0: equal weights.
   */
  readonly focal?: number | undefined;
}

/** The label of rows that do not count. */
export const ignoredLabel = 0xffff_ffff;

/**
 * Cross-entropy of classes, or the selected variant: the mean over rows with a label.
 * @param logits [rows, classes]
 * @param labels uint32 [rows]; {@link ignoredLabel} for rows that do not count
 * @param count number of rows that count
 */
export function classificationLoss(
  logits: Tensor,
  labels: Tensor,
  count: number,
  { labelSmoothing = 0, focal = 0 }: ClassificationLoss,
): Tensor {
  const ignoring = { ignoreIndex: ignoredLabel };
  if (focal === 0) return crossEntropy(logits, labels, { labelSmoothing, ...ignoring });
  const losses = crossEntropy(logits, labels, { reduction: "none", ...ignoring });
  // A loss is −log p of the label, so that this is 1 − p.
  const missing = losses.neg().exp().neg().add(1);
  return missing.pow(focal).mul(losses).sum().div(count);
}
