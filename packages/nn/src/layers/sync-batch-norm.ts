import { withoutAutocast } from "@halfstep/autocast";
import type { LaunchTarget } from "@halfstep/device";
import {
  type BatchNormShape,
  batchNormGradientSums,
  batchNormInputGradient,
  batchNormNormalize,
  batchNormStatistics,
} from "@halfstep/kernels";
import {
  castTo,
  defineHostOp,
  defineOp,
  type HostOp,
  hostLaunch,
  isFiniteNumber,
  logicalAnd,
  noGrad,
  type Op,
  type Operand,
  type Tensor,
  type TensorSpec,
  where,
} from "@halfstep/tensor/functional";
import { Module } from "../module.js";
import { BatchNorm } from "./batch-norm.js";

/** Mean and biased variance of rows, one of each for a channel. */
export interface BatchMoments {
  readonly mean: Float32Array;
  readonly variance: Float32Array;
}

/**
 * How processes that train one model share what batch norms compute of a batch: see {@link syncBatchNorm}. All processes make the same
 * calls in the same order. `StatisticsExchange` of `@halfstep/distributed` is one.
 */
export interface BatchStatisticsExchange {
  /** Whether the batch that is recorded now counts: false in a process that repeats samples of another because none are left for it. */
  readonly isCounted: boolean;
  /** Replaces the moments of `rows` rows by those of the rows of all processes. Resolves to the number of these. */
  merge(moments: BatchMoments, rows: number, label: string): Promise<number>;
  /** Replaces sums over `rows` rows by the mean of the sums of all processes, weighted by their rows. */
  average(sums: Float32Array, rows: number, label: string): Promise<void>;
}

/**
 * Makes the batch norms of a model normalise by the batch of all processes, as torch's `convert_sync_batchnorm` and apex's
 * `convert_syncbn_model` do. Each then trains as one process would on the whole batch, whatever the shares of processes are.
 *
 * Each batch norm exchanges 8 bytes a channel with every other process in the forward pass, and as many in the backward pass. The device
 * waits for both, because the next layer needs the result: a batch norm costs two submits, two read-backs and the latency of two
 * collectives in a step. Gradients are exchanged behind the backward pass then, not beside it. Use it where the batch of a process is
 * too small for its own statistics.
 *
 * @throws TypeError for what is no module, or no exchange
 *
 * @example
 * const statistics = new StatisticsExchange(carrier);
 * syncBatchNorm(model, statistics);
 */
export function syncBatchNorm(model: Module, exchange: BatchStatisticsExchange): void {
  if (!(model instanceof Module) || typeof exchange?.merge !== "function")
    throw new TypeError(
      "syncBatchNorm(model, exchange): pass a module and new StatisticsExchange(carrier) of @halfstep/distributed",
    );
  for (const [, module] of model.namedModules())
    if (module instanceof BatchNorm) module.normalization = (x) => normalized(x, module, exchange);
}

/** Normalises by the batch of all processes, and moves the running statistics. */
function normalized(x: Tensor, norm: BatchNorm, exchange: BatchStatisticsExchange): Tensor {
  const { scaleAndShift, runningMean, runningVar, eps, momentum, path } = norm;
  const parameters = scaleAndShift.map((parameter) => castTo(parameter, "float32"));
  const [output, mean, , unbiased] = normalize.applyAll([x, ...parameters], {
    ...{ exchange, eps, isCounted: exchange.isCounted },
    label: path === "" ? norm.constructor.name : path,
  }) as [Tensor, Tensor, Tensor, Tensor];
  noGrad(() =>
    withoutAutocast(() => {
      const isUsable = logicalAnd(isFiniteNumber(mean), isFiniteNumber(unbiased));
      for (const [running, batch] of [
        [runningMean, mean],
        [runningVar, unbiased],
      ] as const) {
        const moved = running.mul(1 - momentum).add(batch.mul(momentum));
        running.assign(where(isUsable, moved, running));
      }
    }),
  );
  return output;
}

interface Attributes {
  readonly exchange: BatchStatisticsExchange;
  readonly eps: number;
  /** The module, for errors of the exchange. */
  readonly label: string;
  readonly isCounted: boolean;
}

const rowsOf = ({ shape }: TensorSpec): BatchNormShape => {
  const channels = shape.at(-1) as number;
  return { rows: shape.reduce((a, b) => a * b, 1) / channels, channels };
};

/** Memory of the step as large as an operand. */
const scratchLike = (operand: Operand, target: LaunchTarget<Operand["buffer"]>): Operand => ({
  ...operand,
  buffer: target.allocate(4 * operand.length),
  offset: 0,
});

const float32s = (bytes: Uint8Array<ArrayBuffer> | undefined): Float32Array =>
  new Float32Array((bytes as Uint8Array<ArrayBuffer>).buffer, 0, (bytes?.length as number) / 4);

const mergeMoments: HostOp = defineHostOp({
  name: "merge statistics",
  bindings: [
    { name: "mean", access: "read", dtypes: ["float32"] },
    { name: "variance", access: "read", dtypes: ["float32"] },
    { name: "mergedMean", access: "write", dtypes: ["float32"] },
    { name: "mergedVariance", access: "write", dtypes: ["float32"] },
    { name: "unbiasedVariance", access: "write", dtypes: ["float32"] },
  ],
});

const averageSums: HostOp = defineHostOp({
  name: "average gradient sums",
  bindings: [
    { name: "weightSums", access: "read", dtypes: ["float32"] },
    { name: "biasSums", access: "read", dtypes: ["float32"] },
    { name: "weightMeans", access: "write", dtypes: ["float32"] },
    { name: "biasMeans", access: "write", dtypes: ["float32"] },
  ],
});

/** Results: the normalised tensor, and mean, biased and unbiased variance of the batch of all processes. */
const normalize: Op<Attributes> = defineOp<Attributes>({
  name: "batchNorm",
  castPolicy: "none",
  shape([x]) {
    const input = x as TensorSpec;
    const statistic: TensorSpec = { shape: [rowsOf(input).channels], dtype: "float32" };
    return [input, statistic, statistic, statistic];
  },
  forward({ target, inputs, outputs, attributes: { exchange, eps, label, isCounted } }) {
    const [input, weight, bias] = inputs as [Operand, Operand, Operand];
    const [out, mean, variance, unbiased] = outputs as [Operand, Operand, Operand, Operand];
    const shape = rowsOf(input);
    const own = { mean: scratchLike(mean, target), variance: scratchLike(variance, target) };
    batchNormStatistics(target, { input, ...own }, shape);
    const rows = isCounted ? shape.rows : 0;
    target.launch(
      hostLaunch(
        mergeMoments,
        [own.mean, own.variance, mean, variance, unbiased],
        async ([ownMean, ownVariance, ...merged]) => {
          const moments = { mean: float32s(ownMean), variance: float32s(ownVariance) };
          const all = await exchange.merge(moments, rows, `statistics of ${label}`);
          if (all < 2)
            throw new RangeError(
              `${label} got one value a channel in all processes, which has no variance: train on more, or call eval()`,
            );
          const [meanOut, varianceOut, unbiasedOut] = merged.map(float32s);
          meanOut?.set(moments.mean);
          varianceOut?.set(moments.variance);
          unbiasedOut?.set(moments.variance.map((each) => (each * all) / (all - 1)));
        },
      ),
    );
    target.launch(
      batchNormNormalize({ input, mean, variance, weight, bias, out }, { ...shape, eps }),
    );
  },
  backward({ inputs, outputs, gradients, attributes }) {
    const [x, weight] = inputs as [Tensor, Tensor];
    const [, mean, variance] = outputs as [Tensor, Tensor, Tensor];
    // The statistics are results for running averages only: no gradient enters through them.
    const g = gradients[0];
    if (!g) return inputs.map(() => undefined);
    return normalizeBackward.applyAll([x, mean, variance, weight, g], attributes);
  },
});

/**
 * The gradients of input, weight and bias. Those of weight and bias are of the samples of this process, and averaged with all others. The
 * gradient of the input contains the sums over the whole batch: with the loss of each process being a mean over its own samples, they
 * are the mean of all processes' sums, weighted by rows.
 */
const normalizeBackward: Op<Attributes> = defineOp<Attributes>({
  name: "batchNormBackward",
  castPolicy: "none",
  shape: ([x, , , weight]) => [x as TensorSpec, weight as TensorSpec, weight as TensorSpec],
  forward({ target, inputs, outputs, attributes: { exchange, eps, label, isCounted } }) {
    const [input, mean, variance, weight, outGradient] = inputs as [
      Operand,
      Operand,
      Operand,
      Operand,
      Operand,
    ];
    const [inputGradient, weightGradient, biasGradient] = outputs as [Operand, Operand, Operand];
    const attributes = { ...rowsOf(input), eps };
    const operands = { input, mean, variance, outGradient };
    batchNormGradientSums(target, { ...operands, weightGradient, biasGradient }, attributes);
    const rows = isCounted ? attributes.rows : 0;
    const [weightMeans, biasMeans] = [weightGradient, biasGradient].map((sums) =>
      scratchLike(sums, target),
    ) as [Operand, Operand];
    target.launch(
      hostLaunch(
        averageSums,
        [weightGradient, biasGradient, weightMeans, biasMeans],
        async ([weightSums, biasSums, weightOut, biasOut]) => {
          const { channels } = attributes;
          const sums = new Float32Array(2 * channels);
          sums.set(float32s(weightSums));
          sums.set(float32s(biasSums), channels);
          await exchange.average(sums, rows, `gradients of ${label}`);
          float32s(weightOut).set(sums.subarray(0, channels));
          float32s(biasOut).set(sums.subarray(channels));
        },
      ),
    );
    const means = { weightGradient: weightMeans, biasGradient: biasMeans };
    target.launch(
      batchNormInputGradient({ ...operands, ...means, weight, inputGradient }, attributes),
    );
  },
  backward: "none",
});
