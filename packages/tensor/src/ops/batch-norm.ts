import { DTypeError } from "@halfstep/autocast";
import * as kernels from "@halfstep/kernels";
import { checked } from "../arguments/arguments.js";
import * as kinds from "../arguments/kinds.js";
import { isGradEnabled } from "../autograd/grad-mode.js";
import { castTo } from "../dispatch/cast.js";
import { defineOp, type Op, type Operand, type TensorSpec } from "../dispatch/op.js";
import { ShapeError } from "../errors.js";
import { isRecomputation } from "../record/repetition.js";
import type { Tensor, Variable } from "../tensor/tensor.js";

/** Options of {@link batchNormInference}. */
export interface BatchNormOptions {
  /** Added to the variance. Default 1e-5. */
  readonly eps?: number;
}

/** The statistics of batches so far. */
export interface RunningStatistics {
  /** float32 [channels] */
  readonly mean: Variable;
  /** float32 [channels] */
  readonly variance: Variable;
}

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

const runningKinds = kinds.options({ mean: kinds.tensor, variance: kinds.tensor });
const trainingKinds = kinds.optionals({
  eps: kinds.number,
  running: runningKinds,
  momentum: kinds.number,
});

const defaultEps = 1e-5;

function rowsOf(x: TensorSpec): kernels.BatchNormShape {
  const channels = x.shape.at(-1) ?? 1;
  return { rows: x.shape.slice(0, -1).reduce((a, b) => a * b, 1), channels };
}

function check(x: TensorSpec, perChannel: readonly (TensorSpec | undefined)[]): void {
  const { channels } = rowsOf(x);
  if (x.shape.length < 2)
    throw new ShapeError(`batchNorm needs an input [..., channels], not [${x.shape}]`);
  for (const spec of perChannel) {
    if (spec?.shape.length !== 1 || spec.shape[0] !== channels)
      throw new ShapeError(
        `batchNorm: the input [${x.shape}] has ${channels} channels, a parameter or statistic has shape [${spec?.shape}]`,
      );
    if (spec.dtype !== "float32")
      throw new DTypeError(
        `batchNorm: running statistics are float32, not ${spec.dtype}; keep them so under half()`,
      );
  }
}

/**
 * Normalises [..., channels] by the statistics of the batch, then scales and shifts. Results: the normalised tensor in the
 * input's dtype, and the batch's mean and biased variance, float32 [channels].
 */
const normalize: Op<BatchNormTrainingOptions> = defineOp<BatchNormTrainingOptions>({
  name: "batchNorm",
  castPolicy: "none",
  shape([x, weight, bias], { running }) {
    const input = x as TensorSpec;
    check(input, [weight, bias, ...(running ? [running.mean, running.variance] : [])]);
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
    if (!g) return [];
    return isGradEnabled()
      ? composedBackward(x, weight, g, eps)
      : fusedBackward.applyAll([x, mean, variance, weight, g], { eps });
  },
});

const fusedBackward: Op<{ eps: number }> = defineOp<{ eps: number }>({
  name: "batchNormBackward",
  castPolicy: "none",
  shape([x, mean, variance, weight]) {
    check(x as TensorSpec, [mean, variance, weight]);
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
  const centred = input.sub(input.mean(axes));
  const deviation = centred.square().mean(axes).add(eps).sqrt();
  const normalised = centred.div(deviation);
  const projected = gradient.mul(normalised);
  const inner = gradient.sub(gradient.mean(axes)).sub(normalised.mul(projected.mean(axes)));
  return [inner.mul(weight.div(deviation)), projected.sum(axes), gradient.sum(axes)];
}

/** Normalises by given statistics, as in evaluation mode. */
export const normalizeBy: Op<BatchNormOptions> = defineOp<BatchNormOptions>({
  name: "batchNorm",
  castPolicy: "none",
  shape([x, weight, bias, mean, variance]) {
    check(x as TensorSpec, [weight, bias, mean, variance]);
    return [x as TensorSpec];
  },
  forward({ target, inputs, outputs, attributes: { eps = defaultEps } }) {
    const [input, weight, bias, mean, variance] = inputs as [
      Operand,
      Operand,
      Operand,
      Operand,
      Operand,
    ];
    const out = outputs[0] as Operand;
    target.launch(
      kernels.batchNormNormalize(
        { input, mean, variance, weight, bias, out },
        { ...rowsOf(input), eps },
      ),
    );
  },
  backward({ inputs, gradients, attributes: { eps = defaultEps } }) {
    const [x, weight, , mean, variance] = inputs as [Tensor, Tensor, Tensor, Tensor, Tensor];
    const axes = x.shape.map((_, d) => d).slice(0, -1);
    const g = castTo(gradients[0] as Tensor, "float32");
    const deviation = variance.add(eps).sqrt();
    const normalised = castTo(x, "float32").sub(mean).div(deviation);
    return [
      g.mul(weight.div(deviation)),
      g.mul(normalised).sum(axes),
      g.sum(axes),
      undefined,
      undefined,
    ];
  },
});

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

/** Batch normalisation of [..., channels] by running statistics, as in evaluation mode. */
export const batchNormInference: (
  x: Tensor,
  weight: Tensor,
  bias: Tensor,
  running: RunningStatistics,
  options?: BatchNormOptions,
) => Tensor = checked(
  "batchNormInference",
  {
    x: kinds.tensor,
    weight: kinds.tensor,
    bias: kinds.tensor,
    running: runningKinds,
    options: kinds.optionals({ eps: kinds.number }),
  },
  (
    x: Tensor,
    weight: Tensor,
    bias: Tensor,
    running: RunningStatistics,
    options: BatchNormOptions = {},
  ): Tensor =>
    normalizeBy.apply(
      [x, castTo(weight, "float32"), castTo(bias, "float32"), running.mean, running.variance],
      options,
    ),
);
