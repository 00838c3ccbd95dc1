import { DTypeError } from "@halfstep/autocast";
import type { DType } from "@halfstep/device";
import * as kernels from "@halfstep/kernels";
import { castTo, isFloating } from "../cast.js";
import { type Composite, composite } from "../composite.js";
import { ShapeError } from "../errors.js";
import { isGradEnabled } from "../grad-mode.js";
import { defineOp, type Op, type Operand, type TensorSpec } from "../op.js";
import type { Tensor } from "../tensor.js";
import { logicalNot, maskedFill } from "./comparison.js";
import { matmul } from "./matmul.js";
import { type DropoutOptions, dropout as drop } from "./random.js";

export interface AttentionOptions {
  /**
   * Broadcasts to [..., queries, keys]. Floating: added to the scaled scores. A mask (uint32), as comparisons give it: 1 where a
   * query may look.
   */
  readonly mask?: Tensor;
  /** Query i may look at keys 0 … i only. Default false. */
  readonly isCausal?: boolean;
  /** Factor of the scores. Default 1 / √size. */
  readonly scale?: number;
  /** Drops probabilities at random, as in training. Default: none. */
  readonly dropout?: DropoutOptions;
}

interface Probabilities {
  readonly scale: number;
  /** Queries of an entry, where they look at earlier keys only. */
  readonly causalRows: number | undefined;
  /** How the probabilities are stored. */
  readonly dtype: DType;
}

const rowsOf = (shape: readonly number[]): { rows: number; columns: number } => {
  const columns = shape.at(-1) as number;
  return { rows: shape.slice(0, -1).reduce((a, b) => a * b, 1), columns };
};

/** Softmax of scaled scores; a row of −∞ alone gives zeros. The scores may be float32 where the probabilities are 16 bits. */
const probabilitiesOf: Op<Probabilities> = defineOp<Probabilities>({
  name: "attentionProbabilities",
  castPolicy: "none",
  shape: ([scores], { dtype }) => [{ shape: (scores as TensorSpec).shape, dtype }],
  forward({ target, inputs, outputs, attributes: { scale, causalRows } }) {
    const [scores, probabilities] = [inputs[0], outputs[0]] as [Operand, Operand];
    target.launch(
      kernels.attentionProbabilities(
        { scores, probabilities },
        { ...rowsOf(scores.shape), scale, causalRows },
      ),
    );
  },
  backward({ inputs, outputs, gradients, attributes: { scale } }) {
    const [p, g] = [outputs[0], gradients[0]] as [Tensor, Tensor];
    if (!isGradEnabled())
      return [scoresGradient([p, g], { scale, dtype: (inputs[0] as Tensor).dtype })];
    return [p.mul(g.sub(g.mul(p).sum(-1, { keepDimensions: true }))).mul(scale)];
  },
});

const scoresGradient: Op<Omit<Probabilities, "causalRows">> = defineOp<
  Omit<Probabilities, "causalRows">
>({
  name: "attentionProbabilitiesBackward",
  castPolicy: "none",
  shape: ([p], { dtype }) => [{ shape: (p as TensorSpec).shape, dtype }],
  forward({ target, inputs, outputs, attributes: { scale } }) {
    const [probabilities, gradient] = inputs as [Operand, Operand];
    target.launch(
      kernels.attentionProbabilitiesBackward(
        { probabilities, gradient, scoresGradient: outputs[0] as Operand },
        { ...rowsOf(probabilities.shape), scale },
      ),
    );
  },
  backward: "none",
});

/**
 * softmax(query keyᵀ · scale + mask) value, of query [..., queries, size], key [..., keys, size] and value [..., keys, width], as
 * torch.nn.functional.scaled_dot_product_attention. Scores are float32 whatever the dtype; probabilities are stored as the operands
 * are. A query that may look nowhere gets zeros.
 */
export const scaledDotProductAttention: Composite<
  (query: Tensor, key: Tensor, value: Tensor, options?: AttentionOptions) => Tensor
> = composite(
  { name: "scaledDotProductAttention", castPolicy: "lowerPrecision" },
  (query: Tensor, key: Tensor, value: Tensor, options: AttentionOptions = {}): Tensor => {
    requireShapes(query, key, value);
    const { mask, isCausal = false, dropout } = options;
    const { scale = 1 / Math.sqrt(query.shape.at(-1) as number) } = options;
    if (mask && isCausal)
      throw new RangeError(
        "scaledDotProductAttention: isCausal is a mask of its own; put it into the mask, or leave the mask out",
      );
    const { dtype } = query;
    const products = matmul([query, key], { transB: true, dtype: "float32" });
    const isAdded = mask !== undefined && isFloating(mask.dtype);
    // What is added counts after scaling.
    const scores = mask ? masked(isAdded ? products.mul(scale) : products, mask) : products;
    const probabilities = probabilitiesOf([scores], {
      scale: isAdded ? 1 : scale,
      causalRows: isCausal ? (query.shape.at(-2) as number) : undefined,
      dtype,
    });
    return matmul([dropout ? drop(probabilities, dropout) : probabilities, value], {});
  },
);

function masked(scores: Tensor, mask: Tensor): Tensor {
  const lead = scores.rank - mask.rank;
  const broadcasts = mask.shape.every((size, d) => size === 1 || size === scores.shape[lead + d]);
  if (lead < 0 || !broadcasts)
    throw new ShapeError(
      `scaledDotProductAttention: a mask [${mask.shape}] does not broadcast to the scores [${scores.shape}]`,
    );
  if (isFloating(mask.dtype)) return scores.add(castTo(mask, "float32"));
  return maskedFill(scores, logicalNot([mask], null), Number.NEGATIVE_INFINITY);
}

function requireShapes(query: Tensor, key: Tensor, value: Tensor): void {
  const [q, k, v] = [query, key, value].map(({ shape }) => shape) as [number[], number[], number[]];
  const fits = q.length >= 2 && k.length >= 2 && v.length >= 2;
  if (!fits || q.at(-1) !== k.at(-1) || k.at(-2) !== v.at(-2))
    throw new ShapeError(
      `scaledDotProductAttention needs query [..., queries, size], key [..., keys, size] and value [..., keys, width], not [${q}], [${k}] and [${v}]`,
    );
  if (query.dtype !== key.dtype || key.dtype !== value.dtype)
    throw new DTypeError(
      `scaledDotProductAttention: operands are ${query.dtype}, ${key.dtype} and ${value.dtype}; cast them with to()`,
    );
}
