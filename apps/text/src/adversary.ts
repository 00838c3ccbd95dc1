import { noGrad, type Tensor, type Variable } from "@halfstep/tensor";

/**
 * The fast gradient method for texts (Miyato, Dai and Goodfellow 2017): a step of length `epsilon` in which the loss of the batch
 * before rises fastest. The gradient may carry a loss scale, because only its direction is used. If it has overflowed, the result
 * does too, and the scaler skips the step.
 *
 * @returns for the word embeddings, of the shape of `embeddings`
 */
export const fastGradient = (embeddings: Variable, epsilon: number): Tensor | undefined => {
  const { grad } = embeddings;
  return (
    grad &&
    noGrad(() => {
      // The norm of scaled gradients may be out of the range of float32 where they are not.
      const largest = grad.abs().amax().clamp({ min: smallest });
      const direction = grad.div(largest);
      return direction.mul(
        direction.square().sum().sqrt().clamp({ min: 1 }).reciprocal().mul(epsilon),
      );
    })
  );
};

/** Below this no gradient is a direction: the smallest normal float32. */
const smallest = 2 ** -126;
