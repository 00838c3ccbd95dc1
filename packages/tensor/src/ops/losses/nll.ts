import { DTypeError } from "@halfstep/autocast";
import * as kernels from "@halfstep/kernels";
import * as kinds from "../../arguments/kinds.js";
import { castTo } from "../../dispatch/cast.js";
import { type Composite, composite } from "../../dispatch/composite.js";
import { defineOp, type Op, type Operand, type TensorSpec } from "../../dispatch/op.js";
import { ShapeError } from "../../errors.js";
import type { Tensor } from "../../tensor/tensor.js";
import { firstGradient } from "../first-gradient.js";
import { indexBits } from "../index-bits.js";
import { sum } from "../sums.js";
import { type ReductionOptions, reduced } from "./reduction.js";

/** Options of losses of classes. */
export interface ClassOptions extends ReductionOptions {
  /** Factor of each class [classes]; "mean" divides by the sum of those of the labels. Default: ones. */
  readonly weight?: Tensor;
  /**
   * Rows with this label are ignored, also in the divisor of "mean". Labels that may be negative, such as torch's -100, are int32; a
   * uint32 label is compared with its two's complement. Default: none.
   */
  readonly ignoreIndex?: number;
}

/** Rows of scores [..., classes], and a label (uint32) for each. */
export interface LabelledRows {
  readonly scores: Tensor;
  readonly labels: Tensor;
  readonly rows: number;
  readonly classes: number;
}

/** Scores as [rows, classes] and labels as [rows]. */
export function rowsOf(
  name: string,
  scores: Tensor,
  labels: Tensor,
  weight?: Tensor,
): LabelledRows {
  const classes = scores.shape.at(-1) ?? 0;
  if (scores.rank === 0 || scores.shape.slice(0, -1).join() !== labels.shape.join())
    throw new ShapeError(
      `${name} needs logits [..., classes] and labels [...], not [${scores.shape}] and [${labels.shape}]`,
    );
  if (weight && weight.shape.join() !== `${classes}`)
    throw new ShapeError(
      `${name}: weight needs a number for each of the ${classes} classes, not the shape [${weight.shape}]`,
    );
  const rows = labels.size;
  return {
    scores: scores.rank === 2 ? scores : scores.reshape([rows, classes]),
    labels: indexBits(name, "labels", labels, [rows]),
    rows,
    classes,
  };
}

interface Attributes {
  readonly classes: number;
  readonly ignoreIndex: number | undefined;
}

const attributesOf = (labels: Operand, { classes, ignoreIndex }: Attributes) => ({
  rows: labels.length,
  classes,
  ignoreIndex,
});

/** −weight[label] · score[label] of each row, in the dtype of the scores. Operands: scores, labels and perhaps the weight. */
const rowLosses: Op<Attributes> = defineOp<Attributes>({
  name: "nllLoss",
  castPolicy: "float32",
  shape([scores, labels]) {
    return [{ shape: (labels as TensorSpec).shape, dtype: (scores as TensorSpec).dtype }];
  },
  forward({ target, inputs, outputs, attributes }) {
    const [input, labels, weight] = inputs as [Operand, Operand, Operand | undefined];
    const losses = outputs[0] as Operand;
    target.launch(
      kernels.nllLoss({ input, labels, weight, losses }, attributesOf(labels, attributes)),
    );
  },
  backward({ inputs, gradients, attributes }) {
    const [, labels, ...weight] = inputs as [Tensor, Tensor, Tensor];
    const operands = [gradients[0] as Tensor, labels, ...weight];
    return firstGradient(inputs, rowLossesBackward.apply(operands, attributes));
  },
});

const rowLossesBackward: Op<Attributes> = defineOp<Attributes>({
  name: "nllLossBackward",
  castPolicy: "float32",
  shape([g, labels], { classes }) {
    const { shape } = labels as TensorSpec;
    return [{ shape: [...shape, classes], dtype: (g as TensorSpec).dtype }];
  },
  forward({ target, inputs, outputs, attributes }) {
    const [lossGradient, labels, weight] = inputs as [Operand, Operand, Operand | undefined];
    const inputGradient = outputs[0] as Operand;
    target.launch(
      kernels.nllLossBackward(
        { labels, weight, lossGradient, inputGradient },
        attributesOf(labels, attributes),
      ),
    );
  },
  backward({ inputs, gradients, attributes }) {
    const [, labels, ...weight] = inputs as [Tensor, Tensor, Tensor];
    const operands = [gradients[0] as Tensor, labels, ...weight];
    return firstGradient(inputs, rowLosses.apply(operands, attributes));
  },
});

/** weight[label] of each row, and 0 for ignored ones. Operands: labels and perhaps the weight. */
const labelWeightsOp: Op<Attributes> = defineOp<Attributes>({
  name: "labelWeights",
  castPolicy: "float32",
  shape: ([labels]) => [{ shape: (labels as TensorSpec).shape, dtype: "float32" }],
  forward({ target, inputs, outputs, attributes }) {
    const [labels, weight] = inputs as [Operand, Operand | undefined];
    const out = outputs[0] as Operand;
    target.launch(kernels.labelWeights({ labels, weight, out }, attributesOf(labels, attributes)));
  },
  backward: "none",
});

const present = (...tensors: (Tensor | undefined)[]): readonly Tensor[] =>
  tensors.filter((tensor) => tensor !== undefined);

interface Weighting {
  readonly weight?: Tensor | undefined;
  readonly ignoreIndex?: number | undefined;
}

/** −weight[label] · score[label] of each row. */
export const negativeScores = (
  { scores, labels, classes }: LabelledRows,
  { weight, ignoreIndex }: Weighting,
): Tensor => rowLosses.apply(present(scores, labels, weight), { classes, ignoreIndex });

/** weight[label] of each row, and 0 for those that are ignored. */
export const labelWeights = (
  { labels, classes }: LabelledRows,
  { weight, ignoreIndex }: Weighting,
): Tensor => labelWeightsOp.apply(present(labels, weight), { classes, ignoreIndex });

/** 1 at each row's label and 0 elsewhere, float32 [rows, classes]. */
export const labelIndicator = ({
  scores: { runtime },
  labels,
  rows,
  classes,
}: LabelledRows): Tensor =>
  rowLossesBackward.apply([runtime.full([rows], -1), labels], { classes, ignoreIndex: undefined });

/**
 * How often each class occurs among a row's labels before the first invalid one, float32 [rows, classes]; labels have the same shape.
 */
export const labelCounts = (labels: Tensor): Tensor => labelCountsOp.apply([labels], null);

const labelCountsOp: Op<null> = defineOp<null>({
  name: "labelCounts",
  castPolicy: "none",
  shape([labels]) {
    const { shape, dtype } = labels as TensorSpec;
    if (dtype !== "uint32")
      throw new DTypeError(`labels are ${dtype}; make them from a Uint32Array`);
    return [{ shape, dtype: "float32" }];
  },
  forward({ target, inputs, outputs }) {
    const labels = inputs[0] as Operand;
    const [rows, classes] = labels.shape as [number, number];
    const counts = outputs[0] as Operand;
    target.launch(kernels.labelCounts({ labels, counts }, { rows, classes }));
  },
  backward: "none",
});

/** The divisor of "mean", where it is not the number of rows. */
export const weightTotal = (rows: LabelledRows, options: Weighting): Tensor | undefined =>
  options.weight || options.ignoreIndex !== undefined
    ? sum(labelWeights(rows, options))
    : undefined;

/**
 * −logProbabilities at the label, of logProbabilities [..., classes] and labels [...] (uint32 or int32), in float32, as
 * torch.nn.functional.nll_loss with the classes last. An invalid label gives NaN.
 */
export const nllLoss: Composite<
  (logProbabilities: Tensor, labels: Tensor, options?: ClassOptions) => Tensor
> = composite(
  {
    name: "nllLoss",
    castPolicy: "float32",
    parameters: {
      logProbabilities: kinds.tensor,
      labels: kinds.tensor,
      options: kinds.optionals({
        weight: kinds.tensor,
        ignoreIndex: kinds.integer,
        reduction: kinds.reduction,
      }),
    },
  },
  (logProbabilities: Tensor, labels: Tensor, options: ClassOptions = {}): Tensor => {
    const { weight, reduction } = options;
    const rows = rowsOf("nllLoss", castTo(logProbabilities, "float32"), labels, weight);
    const losses = negativeScores(rows, options);
    if (reduction === "none") return losses.reshape(labels.shape);
    return reduced(losses, reduction, weightTotal(rows, options));
  },
);
