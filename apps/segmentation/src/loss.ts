import { castTo, crossEntropy, oneHot, softmax, type Tensor } from "@halfstep/tensor";

/**
 * Cross-entropy plus dice loss, as milesial/Pytorch-UNet trains: the first scores pixels, the second areas, so that classes with
 * few pixels count as much as others. It is float32 for every dtype of the logits, because sums over a batch exceed float16.
 * @param logits [batch, height, width, classes]
 * @param labels [batch · height · width], uint32
 */
export function segmentationLoss(logits: Tensor, labels: Tensor): Tensor {
  const scores = logits.reshape([-1, logits.shape.at(-1) as number]);
  return crossEntropy(scores, labels).add(diceLoss(scores, labels));
}

/**
 * 1 − mean over classes of (2 Σ p·t + 1) / (Σ p + Σ t + 1), sums over all pixels of the batch (Milletari et al. 2016).
 * @param logits [pixels, classes]
 * @param labels [pixels], uint32
 */
export function diceLoss(logits: Tensor, labels: Tensor): Tensor {
  const probabilities = softmax(castTo(logits, "float32"));
  const truth = oneHot(labels, logits.shape.at(-1) as number);
  const overlap = probabilities.mul(truth).sum(0);
  const areas = probabilities.sum(0).add(truth.sum(0));
  return overlap.mul(2).add(1).div(areas.add(1)).mean().neg().add(1);
}
