import type { DType } from "@halfstep/device";
import { isFloating } from "@halfstep/formats/dtypes";
import * as kernels from "@halfstep/kernels";
import { isGradEnabled } from "../autograd/grad-mode.js";
import { castTo } from "../dispatch/cast.js";
import { defineOp, type Op, type Operand, type TensorSpec } from "../dispatch/op.js";
import type { Tensor } from "../tensor/tensor.js";
import { logicalNot, maskedFill } from "./comparison.js";
import { matmul } from "./matmul.js";
import { type Dropout, dropoutOp } from "./random.js";
import { expand } from "./shape.js";
import { sum } from "./sums.js";

/** The parameters of attention besides its tensors. */
export interface AttentionRule {
  readonly scale: number;
  readonly isCausal: boolean;
  /** Keys to either side of a query that it attends to; undefined where there is no limit. */
  readonly window: number | undefined;
  /** Heads of queries that share a head of keys and values. */
  readonly group: number;
  readonly dropout: Dropout | undefined;
}

/** The attributes of `probabilitiesOp`. */
export interface Probabilities {
  readonly scale: number;
  /** Number of queries of an entry under causal attention; undefined where all keys are visible. */
  readonly causalRows: number | undefined;
  /** How the probabilities are stored. */
  readonly dtype: DType;
}

const rowsOf = (shape: readonly number[]): { rows: number; columns: number } => {
  const columns = shape.at(-1) as number;
  return { rows: shape.slice(0, -1).reduce((a, b) => a * b, 1), columns };
};

/** Softmax of scaled scores; a row of −∞ alone gives zeros. The scores may be float32 where the probabilities are 16 bits. */
export const probabilitiesOp: Op<Probabilities> = defineOp<Probabilities>({
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
      return [scoresGradient.apply([p, g], { scale, dtype: (inputs[0] as Tensor).dtype })];
    return [p.mul(g.sub(sum(g.mul(p), -1, { keepDimensions: true }))).mul(scale)];
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

/** The probabilities of attention as a tensor [..., queries, keys], before any are dropped. */
function probabilities(
  query: Tensor,
  key: Tensor,
  mask: Tensor | undefined,
  { scale, isCausal }: AttentionRule,
): Tensor {
  const products = matmul(query, key, { transB: true, dtype: "float32" });
  const isAdded = mask !== undefined && isFloating(mask.dtype);
  // An added mask applies after scaling.
  const scores = mask ? masked(isAdded ? products.mul(scale) : products, mask) : products;
  return probabilitiesOp.apply([scores], {
    scale: isAdded ? 1 : scale,
    causalRows: isCausal ? (query.shape.at(-2) as number) : undefined,
    dtype: query.dtype,
  });
}

/** Scores under a mask: numbers that are added, or flags that are 0 for hidden keys. */
export const masked = (scores: Tensor, mask: Tensor): Tensor =>
  isFloating(mask.dtype)
    ? scores.add(castTo(mask, scores.dtype))
    : maskedFill(scores, logicalNot(mask), Number.NEGATIVE_INFINITY);

const droppedFrom = (x: Tensor, dropout: Dropout | undefined): Tensor =>
  dropout ? dropoutOp.apply([x], dropout) : x;

/** [..., heads, tokens, size] with each head repeated for all heads of queries that share it. */
function repeated(x: Tensor, group: number): Tensor {
  if (group === 1) return x;
  const [tokens, size] = x.shape.slice(-2) as [number, number];
  const [lead, heads] = [x.shape.slice(0, -3), x.shape.at(-3) as number];
  return expand(x.reshape([...lead, heads, 1, tokens, size]), [
    ...[...lead, heads, group],
    ...[tokens, size],
  ]).reshape([...lead, heads * group, tokens, size]);
}

/** The sums over all heads that {@link repeated} made of one. */
function summed(x: Tensor, group: number): Tensor {
  if (group === 1) return x;
  const [heads, tokens, size] = x.shape.slice(-3) as [number, number, number];
  return sum(x.reshape([...x.shape.slice(0, -3), heads / group, group, tokens, size]), -3);
}

/** Attention composed of ops that keep their probabilities, for cases that the fused kernels do not support. */
export const composedAttention = (
  [query, key, value]: readonly [Tensor, Tensor, Tensor],
  mask: Tensor | undefined,
  rule: AttentionRule,
): Tensor => {
  const p = probabilities(query, repeated(key, rule.group), mask, rule);
  return matmul(droppedFrom(p, rule.dropout), repeated(value, rule.group));
};

/** Gradients of query, key and value as ops, so that they can be differentiated again. */
export function composedAttentionGradients(
  [query, key, value]: readonly [Tensor, Tensor, Tensor],
  mask: Tensor | undefined,
  gradient: Tensor,
  rule: AttentionRule,
): readonly [Tensor, Tensor, Tensor] {
  const { group, dropout, scale } = rule;
  const keys = repeated(key, group);
  const p = probabilities(query, keys, mask, rule);
  const g = castTo(gradient, value.dtype);
  const change = droppedFrom(matmul(g, repeated(value, group), { transB: true }), dropout);
  const average = sum(change.mul(p), -1, { keepDimensions: true });
  const scores = p.mul(change.sub(average)).mul(scale);
  return [
    matmul(scores, keys),
    summed(matmul(scores, query, { transA: true }), group),
    summed(matmul(droppedFrom(p, dropout), g, { transA: true }), group),
  ];
}
