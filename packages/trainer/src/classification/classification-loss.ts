import { binaryCrossEntropyWithLogits, crossEntropy, type Tensor } from "@halfstep/tensor";

/** What changes the loss of a classifier. */
export interface ClassificationLoss {
  /** Share of the target that is spread over all classes (Szegedy et al. 2016). Default 0. */
  readonly labelSmoothing?: number | undefined;
  /** Factors of the losses of each class's examples, a tensor of shape [classes]. The mean is over their sum, as in torch. Default: ones. */
  readonly weight?: Tensor | undefined;
  /**
   * γ of the focal loss (Lin et al. 2017), at least 1, which lowers the weight of examples that are already classified well. It excludes
   * the other two. Default 0: equal weights.
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
  { labelSmoothing = 0, weight, focal = 0 }: ClassificationLoss = {},
): Tensor {
  const ignoring = { ignoreIndex: ignoredLabel };
  if (focal === 0)
    return crossEntropy(logits, labels, { labelSmoothing, ...ignoring, ...(weight && { weight }) });
  const losses = crossEntropy(logits, labels, { reduction: "none", ...ignoring });
  // A loss is −log p of the label, so that this is 1 − p.
  const missing = losses.neg().exp().neg().add(1);
  return missing.pow(focal).mul(losses).sum().div(count);
}

/**
 * Binary cross-entropy of each label, the mean over labels and rows, where an example may have any number of labels.
 * @param logits [rows, labels]
 * @param targets float32 [rows, labels]: 1 for labels that the row has, else 0
 */
export function labelSetLoss(
  logits: Tensor,
  targets: Tensor,
  { labelSmoothing = 0, weight }: Omit<ClassificationLoss, "focal"> = {},
): Tensor {
  const smoothed =
    labelSmoothing === 0 ? targets : targets.mul(1 - labelSmoothing).add(labelSmoothing / 2);
  return binaryCrossEntropyWithLogits(logits, smoothed, weight && { posWeight: weight });
}
