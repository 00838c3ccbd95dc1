import { isFloating } from "@halfstep/formats/dtypes";
import * as kernels from "@halfstep/kernels";
import * as kinds from "../../arguments/kinds.js";
import { castTo } from "../../dispatch/cast.js";
import { type Composite, composite } from "../../dispatch/composite.js";
import { defineOp, type Op, type Operand, type TensorSpec } from "../../dispatch/op.js";
import { ShapeError } from "../../errors.js";
import type { Tensor } from "../../tensor/tensor.js";
import { firstGradient } from "../first-gradient.js";
import { logSoftmax, softmax } from "../softmax.js";
import { sum } from "../sums.js";
import { type ClassOptions, type LabelledRows, labelWeights, rowsOf, weightTotal } from "./nll.js";
import { reduced } from "./reduction.js";

/** Options of {@link crossEntropy}. */
export interface CrossEntropyOptions extends ClassOptions {
  /** Share of the target that is spread evenly over all classes, from 0 to 1 (Szegedy et al. 2016). Default 0. */
  readonly labelSmoothing?: number;
}

interface Attributes {
  readonly ignoreIndex: number | undefined;
  readonly labelSmoothing: number;
}

interface BackwardAttributes extends Attributes {
  /** Whether the gradient is that of the rows' mean: one number. Otherwise there is one for each row. */
  readonly ofMean: boolean;
}

const sizesOf = ({ shape }: TensorSpec): { rows: number; classes: number } => {
  const [rows, classes] = shape as [number, number];
  return { rows, classes };
};

/** Loss of each row, computed in float32. Operands: logits, labels and perhaps the weight. */
const rowLosses: Op<Attributes> = defineOp<Attributes>({
  name: "crossEntropy",
  castPolicy: "float32",
  shape: ([, labels]) => [{ shape: (labels as TensorSpec).shape, dtype: "float32" }],
  forward({ target, inputs, outputs, attributes }) {
    const [logits, labels, weight] = inputs as [Operand, Operand, Operand | undefined];
    const losses = outputs[0] as Operand;
    target.launch(
      kernels.softmaxCrossEntropy(
        { logits, labels, weight, losses },
        { ...sizesOf(logits), ...attributes },
      ),
    );
  },
  backward({ inputs, gradients, attributes }) {
    const [logits, labels, ...weight] = inputs as [Tensor, Tensor, ...Tensor[]];
    const operands = [logits, labels, gradients[0] as Tensor, ...weight];
    return firstGradient(inputs, logitsGradient.apply(operands, { ...attributes, ofMean: false }));
  },
});

/**
 * The loss of each row, and their mean. The gradient of the mean is the same for every row, so the backward pass takes it as the
 * one number that it is. Operands: logits and labels.
 */
const meanLoss: Op<number> = defineOp<number>({
  name: "crossEntropy",
  castPolicy: "float32",
  shape: ([, labels]) => [
    { shape: (labels as TensorSpec).shape, dtype: "float32" },
    { shape: [], dtype: "float32" },
  ],
  forward({ target, inputs, outputs, attributes: labelSmoothing }) {
    const [logits, labels] = inputs as [Operand, Operand];
    const [losses, out] = outputs as [Operand, Operand];
    const { rows, classes } = sizesOf(logits);
    target.launch(
      kernels.softmaxCrossEntropy({ logits, labels, losses }, { rows, classes, labelSmoothing }),
    );
    const attributes = { op: "mean", outer: 1, size: rows, inner: 1 } as const;
    kernels.reduce(target, { input: losses, out }, attributes);
  },
  backward({ inputs, gradients, attributes: labelSmoothing }) {
    const operands = [...(inputs as [Tensor, Tensor]), gradients[1] as Tensor];
    const given = { ignoreIndex: undefined, labelSmoothing, ofMean: true };
    return firstGradient(inputs, logitsGradient.apply(operands, given));
  },
});

/** The gradient of the losses by the logits. Operands: logits, labels, gradient of the losses and perhaps the weight. */
const logitsGradient: Op<BackwardAttributes> = defineOp<BackwardAttributes>({
  name: "crossEntropyBackward",
  castPolicy: "float32",
  shape: ([logits]) => [logits as TensorSpec],
  forward({ target, inputs, outputs, attributes: { ofMean, ignoreIndex, labelSmoothing } }) {
    const [logits, labels, lossGradient, weight] = inputs as [Operand, Operand, Operand, Operand];
    const { rows, classes } = sizesOf(logits);
    const reduction = ofMean ? "mean" : "none";
    target.launch(
      kernels.softmaxCrossEntropyBackward(
        { logits, labels, weight, lossGradient, logitsGradient: outputs[0] as Operand },
        { rows, classes, ignoreIndex, labelSmoothing, reduction },
      ),
    );
  },
  backward({ inputs, gradients, needs, attributes }) {
    const [logits, labels, g, weight] = inputs as [Tensor, Tensor, Tensor, Tensor | undefined];
    const v = gradients[0] as Tensor;
    const { rows, classes } = sizesOf(logits);
    const p = softmax(logits);
    const perRow = attributes.ofMean ? g.div(rows) : g;
    const factor = factorOfSoftmax({ scores: logits, labels, rows, classes }, weight, attributes);
    const perLogit = perRow.mul(factor).reshape([-1, 1]);
    const toLogits = p.mul(v.sub(sum(p.mul(v), -1, { keepDimensions: true }))).mul(perLogit);
    const rest = weight ? [undefined] : [];
    if (!needs[2]) return firstGradient(inputs, toLogits);
    const ones = g.runtime.full(g.shape, 1);
    const operands = [logits, labels, ones, ...(weight ? [weight] : [])];
    const weighted = v.mul(logitsGradient.apply(operands, attributes));
    return [toLogits, undefined, attributes.ofMean ? sum(weighted) : sum(weighted, -1), ...rest];
  },
});

/** The factor of softmax(logits) in the gradient of each row's loss: the sum of the weights of the target. */
function factorOfSoftmax(
  rows: LabelledRows,
  weight: Tensor | undefined,
  { ignoreIndex, labelSmoothing }: Attributes,
): Tensor {
  const ofLabels = labelWeights(rows, { weight, ignoreIndex });
  if (labelSmoothing === 0) return ofLabels;
  const counted = weight ? labelWeights(rows, { ignoreIndex }) : ofLabels;
  const ofClasses = weight ? counted.mul(sum(weight).div(rows.classes)) : counted;
  return ofLabels.mul(1 - labelSmoothing).add(ofClasses.mul(labelSmoothing));
}

/**
 * Cross-entropy of logits [..., classes] against labels [...] (uint32 or int32), or against probabilities [..., classes], in float32, as
 * torch.nn.functional.cross_entropy with the classes last. An invalid label gives NaN.
 */
export const crossEntropy: Composite<
  (logits: Tensor, target: Tensor, options?: CrossEntropyOptions) => Tensor
> = composite(
  {
    name: "crossEntropy",
    castPolicy: "float32",
    parameters: {
      logits: kinds.tensor,
      target: kinds.tensor,
      options: kinds.optionals({
        weight: kinds.tensor,
        ignoreIndex: kinds.integer,
        labelSmoothing: kinds.number,
        reduction: kinds.reduction,
      }),
    },
  },
  (logits: Tensor, target: Tensor, options: CrossEntropyOptions = {}): Tensor => {
    const { weight, ignoreIndex, labelSmoothing = 0, reduction } = options;
    if (!(labelSmoothing >= 0 && labelSmoothing <= 1))
      throw new RangeError(`crossEntropy: labelSmoothing is ${labelSmoothing}, not from 0 to 1`);
    const isSpread = isFloating(target.dtype) && target.shape.join() === logits.shape.join();
    if (isSpread && target.rank > 0) return againstProbabilities(logits, target, options);
    const rows = rowsOf("crossEntropy", logits, target, weight);
    const operands = [rows.scores, rows.labels];
    if (!weight && ignoreIndex === undefined && (reduction ?? "mean") === "mean")
      return meanLoss.applyAll(operands, labelSmoothing)[1] as Tensor;
    const losses = rowLosses.apply(weight ? [...operands, castTo(weight, "float32")] : operands, {
      ignoreIndex,
      labelSmoothing,
    });
    if (reduction === "none") return losses.reshape(target.shape);
    return reduced(losses, reduction, weightTotal(rows, options));
  },
);

function againstProbabilities(
  logits: Tensor,
  target: Tensor,
  { weight, ignoreIndex, labelSmoothing = 0, reduction }: CrossEntropyOptions,
): Tensor {
  const classes = logits.shape.at(-1) as number;
  if (ignoreIndex !== undefined)
    throw new RangeError(
      "crossEntropy: ignoreIndex belongs to labels, and the target has probabilities; give the rows to ignore probabilities of 0",
    );
  if (weight && weight.shape.join() !== `${classes}`)
    throw new ShapeError(
      `crossEntropy: weight needs a number for each of the ${classes} classes, not the shape [${weight.shape}]`,
    );
  const probabilities = castTo(target, "float32");
  const smoothed =
    labelSmoothing === 0
      ? probabilities
      : probabilities.mul(1 - labelSmoothing).add(labelSmoothing / classes);
  const weighted = weight ? smoothed.mul(castTo(weight, "float32")) : smoothed;
  const scores = logSoftmax(castTo(logits, "float32"));
  return reduced(sum(scores.mul(weighted), -1).neg(), reduction);
}
