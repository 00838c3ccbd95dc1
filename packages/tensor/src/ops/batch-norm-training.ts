import * as kernels from "@halfstep/kernels";
import { checked } from "../arguments/arguments.js";
import * as kinds from "../arguments/kinds.js";
import { isGradEnabled } from "../autograd/grad-mode.js";
import { castTo } from "../dispatch/cast.js";
import { defineOp, type Op, type Operand, type TensorSpec } from "../dispatch/op.js";
import { ShapeError } from "../errors.js";
import { isRecomputation } from "../record/repetition.js";
import type { Tensor } from "../tensor/tensor.js";
import {
  type BatchNormOptions,
  checkChannels,
  defaultEps,
  type RunningStatistics,
  rowsOf,
  runningKinds,
} from "./batch-norm.js";
import { mean, sum } from "./sums.js";

/** Options of {@link batchNorm}. */
export interface BatchNormTrainingOptions extends BatchNormOptions {
  /**
   * Moved towards the batch's statistics, in place, the variance towards the unbiased one, as in torch; a channel with a non-finite
   * statistic keeps its running values. A checkpoint that computes the batch again moves them once.
   */
  readonly running?: RunningStatistics;
  /** Weight of the batch in the running statistics. Default 0.1. */
  readonly momentum?: number;
}

const trainingKinds = kinds.optionals({
  eps: kinds.number,
  running: runningKinds,
  momentum: kinds.number,
});

/**
 * Normalises [..., channels] by the statistics of the batch, then scales and shifts. Results: the normalised tensor in the
 * input's dtype, and the batch's mean and biased variance, float32 [channels].
 */
const normalize: Op<BatchNormTrainingOptions> = defineOp<BatchNormTrainingOptions>({
  name: "batchNorm",
  castPolicy: "none",
  shape([x, weight, bias], { running }) {
    const input = x as TensorSpec;
    checkChannels(input, [weight, bias, ...(running ? [running.mean, running.variance] : [])]);
    const { rows } = rowsOf(input);
    if (running && rows < 2)
      throw new ShapeError(
        `batchNorm got one value a channel, [${input.shape}], which has no variance for running statistics: train on more`,
      );
    const statistic: TensorSpec = { shape: [rowsOf(input).channels], dtype: "float32" };
    return [input, statistic, statistic];
  },
  forward({ target, inputs, outputs, attributes: { eps = defaultEps, running, momentum = 0.1 } }) {
    const [input, weight, bias] = inputs as [Operand, Operand, Operand];
    const [out, mean, variance] = outputs as [Operand, Operand, Operand];
    const shape = rowsOf(input);
    const moved = running &&
      !isRecomputation() && {
        mean: running.mean.operand(),
        variance: running.variance.operand(),
        momentum,
      };
    kernels.batchNormStatistics(
      target,
      { input, mean, variance, ...(moved && { running: moved }) },
      shape,
    );
    target.launch(
      kernels.batchNormNormalize({ input, mean, variance, weight, bias, out }, { ...shape, eps }),
    );
  },
  backward({ inputs, outputs, gradients, attributes: { eps = defaultEps } }) {
    const [x, weight] = inputs as [Tensor, Tensor];
    const [, mean, variance] = outputs as [Tensor, Tensor, Tensor];
    // The statistics are results for running averages only: no gradient enters through them.
    const g = gradients[0];
    if (!g) return inputs.map(() => undefined);
    return isGradEnabled()
      ? composedBackward(x, weight, g, eps)
      : fusedBackward.applyAll([x, mean, variance, weight, g], { eps });
  },
});

const fusedBackward: Op<{ eps: number }> = defineOp<{ eps: number }>({
  name: "batchNormBackward",
  castPolicy: "none",
  shape([x, mean, variance, weight]) {
    checkChannels(x as TensorSpec, [mean, variance, weight]);
    return [x as TensorSpec, weight as TensorSpec, weight as TensorSpec];
  },
  forward({ target, inputs, outputs, attributes: { eps } }) {
    const [input, mean, variance, weight, outGradient] = inputs as [
      Operand,
      Operand,
      Operand,
      Operand,
      Operand,
    ];
    const [inputGradient, weightGradient, biasGradient] = outputs as [Operand, Operand, Operand];
    kernels.batchNormBackward(
      target,
      { input, mean, variance, weight, outGradient, inputGradient, weightGradient, biasGradient },
      { ...rowsOf(input), eps },
    );
  },
  backward: "none",
});

/** The same gradients written in ops, so that they can be differentiated again. */
function composedBackward(x: Tensor, weight: Tensor, g: Tensor, eps: number): readonly Tensor[] {
  const axes = x.shape.map((_, d) => d).slice(0, -1);
  const input = castTo(x, "float32");
  const gradient = castTo(g, "float32");
  const centred = input.sub(mean(input, axes));
  const deviation = mean(centred.square(), axes).add(eps).sqrt();
  const normalised = centred.div(deviation);
  const projected = gradient.mul(normalised);
  const inner = gradient.sub(mean(gradient, axes)).sub(normalised.mul(mean(projected, axes)));
  return [inner.mul(weight.div(deviation)), sum(projected, axes), sum(gradient, axes)];
}

/** The result of {@link batchNorm}. */
export interface BatchNormResult {
  /** The normalised tensor. */
  readonly output: Tensor;
  /** Of the batch, float32 [channels]. */
  readonly mean: Tensor;
  /** Of the batch, biased, float32 [channels]. */
  readonly variance: Tensor;
}

/** Batch normalisation of [..., channels] in training mode. It computes in float32, and statistics are float32 in every dtype. */
export const batchNorm: (
  x: Tensor,
  weight: Tensor,
  bias: Tensor,
  options?: BatchNormTrainingOptions,
) => BatchNormResult = checked(
  "batchNorm",
  { x: kinds.tensor, weight: kinds.tensor, bias: kinds.tensor, options: trainingKinds },
  (
    x: Tensor,
    weight: Tensor,
    bias: Tensor,
    options: BatchNormTrainingOptions = {},
  ): BatchNormResult => {
    const parameters = [weight, bias].map((parameter) => castTo(parameter, "float32"));
    const [output, mean, variance] = normalize.applyAll([x, ...parameters], options) as [
      Tensor,
      Tensor,
      Tensor,
    ];
    return { output, mean, variance };
  },
);
