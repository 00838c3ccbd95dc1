import * as kernels from "@halfstep/kernels";
import { castTo, isFloating } from "../../cast.js";
import { type Composite, composite } from "../../composite.js";
import { ShapeError } from "../../errors.js";
import { defineOp, type Op, type Operand, type TensorSpec } from "../../op.js";
import type { Tensor } from "../../tensor.js";
import { keepWhere } from "../comparison.js";
import { logSoftmax, softmax } from "../softmax.js";
import { type ClassOptions, labelWeights, negativeScores, rowsOf, weightTotal } from "./nll.js";
import { reduced } from "./reduction.js";

export interface CrossEntropyOptions extends ClassOptions {
  /** Share of the target that is spread evenly over all classes, from 0 to 1 (Szegedy et al. 2016). Default 0. */
  readonly labelSmoothing?: number;
}

interface Attributes {
  readonly ignoreIndex: number | undefined;
}

interface BackwardAttributes extends Attributes {
  /** Whether the gradient is that of the rows' mean: one number. Otherwise there is one for each row. */
  readonly ofMean: boolean;
}

const sizesOf = ({ shape }: TensorSpec): { rows: number; classes: number } => {
  const [rows, classes] = shape as [number, number];
  return { rows, classes };
};

const ignoring = ({ ignoreIndex }: Attributes): { ignoreIndex?: number } =>
  ignoreIndex === undefined ? {} : { ignoreIndex };

/** Loss of each row, −log softmax(logits)[label], computed in float32. */
const rowLosses: Op<Attributes> = defineOp<Attributes>({
  name: "crossEntropy",
  castPolicy: "float32",
  shape: ([, labels]) => [{ shape: (labels as TensorSpec).shape, dtype: "float32" }],
  forward({ target, inputs, outputs, attributes }) {
    const [logits, labels] = inputs as [Operand, Operand];
    const losses = outputs[0] as Operand;
    target.launch(
      kernels.softmaxCrossEntropy(
        { logits, labels, losses },
        { ...sizesOf(logits), ...ignoring(attributes) },
      ),
    );
  },
  backward({ inputs, gradients, attributes }) {
    const [logits, labels] = inputs as [Tensor, Tensor];
    const operands = [logits, labels, gradients[0] as Tensor];
    return [logitsGradient(operands, { ...attributes, ofMean: false }), undefined];
  },
});

/**
 * The loss of each row, and their mean. The gradient of the mean is the same for every row, so the backward pass takes it as the
 * one number that it is.
 */
const meanLoss: Op<object> = defineOp<object>({
  name: "crossEntropy",
  castPolicy: "float32",
  shape: ([, labels]) => [
    { shape: (labels as TensorSpec).shape, dtype: "float32" },
    { shape: [], dtype: "float32" },
  ],
  forward({ target, inputs, outputs }) {
    const [logits, labels] = inputs as [Operand, Operand];
    const [losses, out] = outputs as [Operand, Operand];
    const { rows, classes } = sizesOf(logits);
    target.launch(kernels.softmaxCrossEntropy({ logits, labels, losses }, { rows, classes }));
    const attributes = { op: "mean", outer: 1, size: rows, inner: 1 } as const;
    kernels.reduce(target, { input: losses, out }, attributes);
  },
  backward({ inputs, gradients }) {
    const operands = [...(inputs as [Tensor, Tensor]), gradients[1] as Tensor];
    return [logitsGradient(operands, { ignoreIndex: undefined, ofMean: true }), undefined];
  },
});

/** (softmax(logits) − onehot(labels)) · gradient of each row's loss. */
const logitsGradient: Op<BackwardAttributes> = defineOp<BackwardAttributes>({
  name: "crossEntropyBackward",
  castPolicy: "float32",
  shape: ([logits]) => [logits as TensorSpec],
  forward({ target, inputs, outputs, attributes }) {
    const [logits, labels, lossGradient] = inputs as [Operand, Operand, Operand];
    target.launch(
      kernels.softmaxCrossEntropyBackward(
        { logits, labels, lossGradient, logitsGradient: outputs[0] as Operand },
        {
          ...sizesOf(logits),
          ...ignoring(attributes),
          reduction: attributes.ofMean ? "mean" : "none",
        },
      ),
    );
  },
  backward({ inputs, gradients, needs, attributes }) {
    const [logits, labels, g] = inputs as [Tensor, Tensor, Tensor];
    const v = gradients[0] as Tensor;
    const { rows, classes } = sizesOf(logits);
    const p = softmax(logits);
    const counts = labelWeights({ scores: logits, labels, rows, classes }, attributes);
    const perRow = attributes.ofMean ? g.div(rows) : g;
    const perLogit = perRow.mul(counts).reshape([-1, 1]);
    const toLogits = p.mul(v.sub(p.mul(v).sum(-1, { keepDimensions: true }))).mul(perLogit);
    if (!needs[2]) return [toLogits, undefined, undefined];
    const ones = g.runtime.full(g.shape, 1);
    const weighted = v.mul(logitsGradient([logits, labels, ones], attributes));
    return [toLogits, undefined, attributes.ofMean ? weighted.sum() : weighted.sum(-1)];
  },
});

/**
 * Cross-entropy of logits [..., classes] against labels [...] (uint32), or against probabilities [..., classes], in float32, as
 * torch.nn.functional.cross_entropy with the classes last. A label that is no class gives NaN.
 */
export const crossEntropy: Composite<
  (logits: Tensor, target: Tensor, options?: CrossEntropyOptions) => Tensor
> = composite(
  { name: "crossEntropy", castPolicy: "float32" },
  (logits: Tensor, target: Tensor, options: CrossEntropyOptions = {}): Tensor => {
    const { weight, ignoreIndex, labelSmoothing = 0, reduction } = options;
    if (!(labelSmoothing >= 0 && labelSmoothing <= 1))
      throw new RangeError(`crossEntropy: labelSmoothing is ${labelSmoothing}, not from 0 to 1`);
    const isSpread = isFloating(target.dtype) && target.shape.join() === logits.shape.join();
    if (isSpread && target.rank > 0) return againstProbabilities(logits, target, options);
    const rows = rowsOf("crossEntropy", logits, target, weight);
    const isPlain = !weight && ignoreIndex === undefined && labelSmoothing === 0;
    if (isPlain && (reduction ?? "mean") === "mean")
      return meanLoss.all([rows.scores, rows.labels], {})[1] as Tensor;
    const losses =
      weight || labelSmoothing > 0
        ? smoothedLosses(rows, options, labelSmoothing)
        : rowLosses([rows.scores, rows.labels], { ignoreIndex });
    if (reduction === "none") return losses.reshape(target.shape);
    return reduced(losses, reduction, weightTotal(rows, options));
  },
);

type Rows = ReturnType<typeof rowsOf>;

/** (1 − smoothing) · loss at the label + smoothing · mean of the losses at all classes, each weighted by its class. */
function smoothedLosses(rows: Rows, options: CrossEntropyOptions, smoothing: number): Tensor {
  const { weight, ignoreIndex } = options;
  const scores = logSoftmax(castTo(rows.scores, "float32"));
  const losses = negativeScores({ ...rows, scores }, options);
  if (smoothing === 0) return losses;
  const spread = (weight ? scores.mul(castTo(weight, "float32")) : scores).sum(-1);
  const counted =
    ignoreIndex === undefined
      ? spread
      : keepWhere([spread, labelWeights(rows, { ignoreIndex })], null);
  return losses.mul(1 - smoothing).sub(counted.mul(smoothing / rows.classes));
}

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
  return reduced(scores.mul(weighted).sum(-1).neg(), reduction);
}
