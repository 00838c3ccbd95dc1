import { DTypeError } from "@halfstep/autocast";
import * as kernels from "@halfstep/kernels";
import { ShapeError } from "../errors.js";
import { defineOp, type Op, type Operand, type TensorSpec } from "../op.js";
import type { Tensor } from "../tensor.js";
import { softmax } from "./softmax.js";

type Reduction = "mean" | "sum" | "none";

export interface CrossEntropyOptions {
  /** Default "mean", over the rows. */
  readonly reduction?: Reduction;
}

interface Rows {
  readonly rows: number;
  readonly classes: number;
}

function rowsOf(logits: TensorSpec, labels: TensorSpec): Rows {
  const [rows, classes] = logits.shape as [number, number];
  if (logits.shape.length !== 2 || labels.shape.length !== 1 || labels.shape[0] !== rows)
    throw new ShapeError(
      `crossEntropy needs logits [rows, classes] and labels [rows], not [${logits.shape}] and [${labels.shape}]`,
    );
  if (labels.dtype !== "uint32")
    throw new DTypeError(`crossEntropy: labels are ${labels.dtype}; make them from a Uint32Array`);
  return { rows, classes };
}

/** Loss of each row, −log softmax(logits)[label], computed in float32. */
const rowLosses: Op<null> = defineOp<null>({
  name: "crossEntropy",
  castPolicy: "float32",
  shape: ([logits, labels]) => {
    const { rows } = rowsOf(logits as TensorSpec, labels as TensorSpec);
    return [{ shape: [rows], dtype: "float32" }];
  },
  forward({ target, inputs, outputs }) {
    const [logits, labels] = inputs as [Operand, Operand];
    const losses = outputs[0] as Operand;
    target.launch(kernels.softmaxCrossEntropy({ logits, labels, losses }, rowsOf(logits, labels)));
  },
  backward({ inputs, gradients }) {
    const [logits, labels] = inputs as [Tensor, Tensor];
    return [rowLossesBackward([logits, labels, gradients[0] as Tensor], null), undefined];
  },
});

/** (softmax(logits) − onehot(labels)) · gradient of each row's loss. */
const rowLossesBackward: Op<null> = defineOp<null>({
  name: "crossEntropyBackward",
  castPolicy: "float32",
  shape: ([logits]) => [logits as TensorSpec],
  forward({ target, inputs, outputs }) {
    const [logits, labels, lossGradient] = inputs as [Operand, Operand, Operand];
    const logitsGradient = outputs[0] as Operand;
    target.launch(
      kernels.softmaxCrossEntropyBackward(
        { logits, labels, lossGradient, logitsGradient },
        { ...rowsOf(logits, labels), reduction: "none" },
      ),
    );
  },
  backward({ inputs, gradients, needs }) {
    const [logits, labels, g] = inputs as [Tensor, Tensor, Tensor];
    const v = gradients[0] as Tensor;
    const p = softmax(logits);
    const rows = g.reshape([-1, 1]);
    const logitsGradient = p.mul(v.sub(p.mul(v).sum(-1, { keepDimensions: true }))).mul(rows);
    if (!needs[2]) return [logitsGradient, undefined, undefined];
    const ones = g.runtime.full(g.shape, 1);
    const perRow = rowLossesBackward([logits, labels, ones], null);
    return [logitsGradient, undefined, v.mul(perRow).sum(-1)];
  },
});

/** Cross-entropy of logits [rows, classes] against labels [rows] (uint32), in float32, as torch.nn.functional.cross_entropy. */
export function crossEntropy(
  logits: Tensor,
  labels: Tensor,
  { reduction = "mean" }: CrossEntropyOptions = {},
): Tensor {
  const losses = rowLosses([logits, labels], null);
  if (reduction === "none") return losses;
  return reduction === "mean" ? losses.mean() : losses.sum();
}
