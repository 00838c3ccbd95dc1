import * as kernels from "@halfstep/kernels";
import * as kinds from "../../arguments/kinds.js";
import { castTo } from "../../dispatch/cast.js";
import { type Composite, composite } from "../../dispatch/composite.js";
import { defineOp, type Op, type Operand, type TensorSpec } from "../../dispatch/op.js";
import { NoSecondDerivativeError, ShapeError } from "../../errors.js";
import type { Tensor } from "../../tensor/tensor.js";
import { clamp } from "../activations.js";
import { ge, keepWhere, logicalNot, maskedFill } from "../comparison.js";
import { indexBits } from "../index-bits.js";
import { mean, sum } from "../sums.js";
import type { ReductionOptions } from "./reduction.js";

/** Options of {@link ctcLoss}. */
export interface CtcOptions extends ReductionOptions {
  /** The class between labels. Default 0. */
  readonly blank?: number;
  /** Whether losses of labels that cannot be aligned are 0 instead of infinite. Default false. */
  readonly zeroInfinity?: boolean;
}

interface Attributes {
  readonly blank: number;
}

const shapeOf = (
  logProbs: Pick<TensorSpec, "shape">,
  targets: Pick<TensorSpec, "shape">,
  { blank }: Attributes,
): kernels.CtcShape => {
  const [length, batch, classes] = logProbs.shape as [number, number, number];
  return { length, batch, classes, labels: targets.shape[1] as number, blank };
};

/** [logProbs, targets, input lengths, target lengths]: losses, and the forward recursion for the gradient. */
const lossOp: Op<Attributes> = defineOp<Attributes>({
  name: "ctcLoss",
  castPolicy: "float32",
  shape([logProbs, targets], attributes) {
    const { batch, length, labels } = shapeOf(
      logProbs as TensorSpec,
      targets as TensorSpec,
      attributes,
    );
    return [
      { shape: [batch], dtype: "float32" },
      { shape: [batch, length, 2 * labels + 1], dtype: "float32" },
    ];
  },
  forward({ target, inputs, outputs, attributes }) {
    const [logProbs, targets, inputLengths, targetLengths] = inputs as [
      Operand,
      Operand,
      Operand,
      Operand,
    ];
    const [losses, alphas] = outputs as [Operand, Operand];
    const operands = { logProbs, targets, inputLengths, targetLengths, alphas, losses };
    target.launch(kernels.ctcLoss(operands, shapeOf(logProbs, targets, attributes)));
  },
  backward({ inputs, outputs, gradients, attributes }) {
    const slope = gradientOp.apply([...inputs, ...outputs], attributes);
    const g = gradients[0] as Tensor;
    return [slope.mul(g.reshape([1, g.size, 1])), undefined, undefined, undefined];
  },
});

const gradientOp: Op<Attributes> = defineOp<Attributes>({
  name: "ctcLossBackward",
  castPolicy: "none",
  shape: ([logProbs]) => [logProbs as TensorSpec],
  forward({ target, inputs, outputs, attributes }) {
    const [logProbs, targets, inputLengths, targetLengths, losses, alphas] = inputs as [
      Operand,
      Operand,
      Operand,
      Operand,
      Operand,
      Operand,
    ];
    const shape = shapeOf(logProbs, targets, attributes);
    const betas = {
      ...{ buffer: target.allocate(4 * alphas.length), offset: 0 },
      ...{ length: alphas.length, dtype: "float32" as const },
    };
    const common = { targets, inputLengths, targetLengths };
    target.launch(kernels.ctcBetas({ logProbs, ...common, betas }, shape));
    const gradient = outputs[0] as Operand;
    target.launch(kernels.ctcGradient({ ...common, alphas, betas, losses, gradient }, shape));
  },
  backward() {
    throw new NoSecondDerivativeError("ctcLoss has no second derivative here: use no createGraph");
  },
});

/** Losses from here on stand for labels that cannot be aligned. */
const impossible = 1e29;

/**
 * The connectionist temporal classification loss of log-probabilities [length, batch, classes] against targets [batch, labels], in
 * float32, as torch.nn.functional.ctc_loss. Lengths are [batch]; all three are uint32 or int32. The mean divides each loss by its number of labels first.
 * A length beyond that of the tensor, and a label that is no class, give NaN.
 *
 * The gradient is that by the log-probabilities. torch adds their exponentials to it, which makes no difference below a log-softmax.
 */
export const ctcLoss: Composite<
  (
    logProbs: Tensor,
    targets: Tensor,
    inputLengths: Tensor,
    targetLengths: Tensor,
    options?: CtcOptions,
  ) => Tensor
> = composite(
  {
    name: "ctcLoss",
    castPolicy: "float32",
    parameters: {
      logProbs: kinds.tensor,
      targets: kinds.tensor,
      inputLengths: kinds.tensor,
      targetLengths: kinds.tensor,
      options: kinds.optionals({
        blank: kinds.integer,
        reduction: kinds.reduction,
        zeroInfinity: kinds.flag,
      }),
    },
  },
  (
    logProbs: Tensor,
    targets: Tensor,
    inputLengths: Tensor,
    targetLengths: Tensor,
    { blank = 0, reduction = "mean", zeroInfinity = false }: CtcOptions = {},
  ): Tensor => {
    const [length, batch, classes] = logProbs.shape as [number, number, number];
    const integers = [targets, inputLengths, targetLengths].map((x) =>
      indexBits("ctcLoss", "labels", x),
    );
    const fits =
      logProbs.rank === 3 &&
      targets.rank === 2 &&
      integers.every((x) => x.shape[0] === batch) &&
      [inputLengths, targetLengths].every((x) => x.rank === 1);
    if (!fits || length < 1 || !(blank >= 0 && blank < classes))
      throw new ShapeError(
        `ctcLoss: log-probabilities [length, batch, classes] of shape [${logProbs.shape}] with blank ${blank} need targets [batch, labels] and lengths [batch], not [${targets.shape}], [${inputLengths.shape}] and [${targetLengths.shape}]`,
      );
    const operands = [castTo(logProbs, "float32"), ...integers];
    const losses = lossOp.apply(operands, { blank });
    const isImpossible = ge(losses, impossible);
    // A factor of infinity, so that gradients are not finite either: a scaler has to see it.
    const factor = (): Tensor =>
      maskedFill(
        castTo(logicalNot(isImpossible), "float32"),
        isImpossible,
        Number.POSITIVE_INFINITY,
      );
    const each = zeroInfinity ? keepWhere(losses, logicalNot(isImpossible)) : losses.mul(factor());
    if (reduction === "none") return each;
    if (reduction === "sum") return sum(each);
    return mean(each.div(castTo(clamp(targetLengths, { min: 1 }), "float32")));
  },
);
