import { DTypeError } from "@halfstep/autocast";
import * as kernels from "@halfstep/kernels";
import { checked } from "../arguments/arguments.js";
import * as kinds from "../arguments/kinds.js";
import { castTo } from "../dispatch/cast.js";
import { defineOp, type Op, type Operand, type TensorSpec } from "../dispatch/op.js";
import { ShapeError } from "../errors.js";
import type { Tensor, Variable } from "../tensor/tensor.js";
import { sum } from "./sums.js";

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

/** The kinds of {@link RunningStatistics}. */
export const runningKinds: kinds.Kind = kinds.options({
  mean: kinds.tensor,
  variance: kinds.tensor,
});

/** Added to variances by default. */
export const defaultEps: number = 1e-5;

/** The number of values of a channel, and of channels: the last dimension. */
export function rowsOf(x: TensorSpec): kernels.BatchNormShape {
  const channels = x.shape.at(-1) ?? 1;
  return { rows: x.shape.slice(0, -1).reduce((a, b) => a * b, 1), channels };
}

/** Refuses an input without channels, and parameters or statistics that are not float32 [channels]. */
export function checkChannels(
  x: TensorSpec,
  perChannel: readonly (TensorSpec | undefined)[],
): void {
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

/** Normalises by given statistics, as in evaluation mode. */
export const normalizeBy: Op<BatchNormOptions> = defineOp<BatchNormOptions>({
  name: "batchNorm",
  castPolicy: "none",
  shape([x, weight, bias, mean, variance]) {
    checkChannels(x as TensorSpec, [weight, bias, mean, variance]);
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
      sum(g.mul(normalised), axes),
      sum(g, axes),
      undefined,
      undefined,
    ];
  },
});

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
