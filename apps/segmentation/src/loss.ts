import { castTo, crossEntropy, oneHot, softmax, type Tensor } from "@halfstep/tensor";
import { ignored } from "./masks.js";

/** Options of {@link segmentationLoss}. */
export interface SegmentationLossOptions {
  /** The weight of each class in the cross-entropy, [classes], float32. Default: 1. */
  readonly weight?: Tensor | undefined;
  /** Share of the target that the cross-entropy spreads over all classes. Default 0. */
  readonly labelSmoothing?: number | undefined;
  /** Whether pixels may have the label {@link ignored}. They take no part then. Default false. */
  readonly ignores?: boolean | undefined;
}

/**
 * Cross-entropy plus dice loss, as milesial/Pytorch-UNet trains: the first scores pixels, the second areas, so that classes with
 * few pixels count as much as others. It is float32 for every dtype of the logits, because sums over a batch exceed float16.
 * @param logits [batch, height, width, classes]
 * @param labels [batch · height · width], uint32
 */
export function segmentationLoss(
  logits: Tensor,
  labels: Tensor,
  { weight, labelSmoothing = 0, ignores = false }: SegmentationLossOptions = {},
): Tensor {
  const classes = logits.shape.at(-1) as number;
  const scores = logits.reshape([-1, classes]);
  const options = { labelSmoothing, ...(weight && { weight }) };
  if (!ignores) return crossEntropy(scores, labels, options).add(diceLoss(scores, labels));
  const truth = oneHot(labels, classes);
  const counted = truth.sum(-1, { keepDimensions: true });
  const total = (weight ? truth.mul(weight) : truth).sum();
  const losses = crossEntropy(scores, labels, {
    ...options,
    ...{ ignoreIndex: ignored, reduction: "sum" },
  });
  // A batch may have no pixel that counts.
  return losses.div(total.clamp({ min: leastTotal })).add(diceLoss(scores, labels, counted));
}

const leastTotal = 2 ** -20;

/**
 * 1 − mean over classes of (2 Σ p·t + 1) / (Σ p + Σ t + 1), sums over all pixels of the batch (Milletari et al. 2016).
 * @param logits [pixels, classes]
 * @param labels [pixels], uint32
 * @param counted [pixels, 1], 1 for pixels that count and 0 for others. Default: all count.
 */
export function diceLoss(logits: Tensor, labels: Tensor, counted?: Tensor): Tensor {
  const all = softmax(castTo(logits, "float32"));
  const probabilities = counted ? all.mul(counted) : all;
  const truth = oneHot(labels, logits.shape.at(-1) as number);
  const overlap = probabilities.mul(truth).sum(0);
  const areas = probabilities.sum(0).add(truth.sum(0));
  return overlap.mul(2).add(1).div(areas.add(1)).mean().neg().add(1);
}
