import * as kinds from "../../arguments/kinds.js";
import { castTo } from "../../dispatch/cast.js";
import { type Composite, composite } from "../../dispatch/composite.js";
import { ShapeError } from "../../errors.js";
import type { Tensor } from "../../tensor/tensor.js";
import { clamp } from "../activations.js";
import { eq, keepWhere } from "../comparison.js";
import { pairwiseDistance } from "../distances.js";
import { minimum } from "../elementwise.js";
import { indexBits } from "../index-bits.js";
import { sum } from "../sums.js";
import type { MarginOptions } from "./binary.js";
import { requireSameShape } from "./element-loss.js";
import { labelCounts, labelIndicator, labelWeights, negativeScores, rowsOf } from "./nll.js";
import { reduced } from "./reduction.js";

const float = (x: Tensor): Tensor => castTo(x, "float32");

/** max(0, x). Unlike that of relu, its gradient passes at 0, as that of torch's clamp_min in these losses. */
const violation = (x: Tensor): Tensor => clamp(x, { min: 0 });

const pairKinds = {
  a: kinds.tensor,
  b: kinds.tensor,
  target: kinds.tensor,
  options: kinds.optionals({ margin: kinds.number, reduction: kinds.reduction }),
};

type PairLoss = Composite<
  (a: Tensor, b: Tensor, target: Tensor, options?: MarginOptions) => Tensor
>;

/**
 * max(0, margin − target · (a − b)): a should rank above b where the target is 1, below where it is −1, as
 * torch.nn.functional.margin_ranking_loss, in float32. The margin is 0 by default.
 */
export const marginRankingLoss: PairLoss = composite(
  { name: "marginRankingLoss", castPolicy: "float32", parameters: pairKinds },
  (a: Tensor, b: Tensor, target: Tensor, { margin = 0, reduction }: MarginOptions = {}): Tensor => {
    requireSameShape("marginRankingLoss", { "first input": a, "second input": b, target });
    const lead = float(a).sub(float(b));
    return reduced(violation(float(target).mul(lead).neg().add(margin)), reduction);
  },
);

/**
 * 1 − cos(a, b) where the target is 1, max(0, cos(a, b) − margin) where it is −1, of vectors along the last axis, as
 * torch.nn.functional.cosine_embedding_loss, in float32. The margin is 0 by default.
 */
export const cosineEmbeddingLoss: PairLoss = composite(
  { name: "cosineEmbeddingLoss", castPolicy: "float32", parameters: pairKinds },
  (a: Tensor, b: Tensor, target: Tensor, { margin = 0, reduction }: MarginOptions = {}): Tensor => {
    requireSameShape("cosineEmbeddingLoss", { "first input": a, "second input": b });
    if (target.shape.join() !== a.shape.slice(0, -1).join())
      throw new ShapeError(
        `cosineEmbeddingLoss: vectors [${a.shape}] need a target of shape [${a.shape.slice(0, -1)}], not [${target.shape}]`,
      );
    const [x, y, t] = [float(a), float(b), float(target)];
    const squares = (v: Tensor): Tensor => sum(v.square(), -1).add(1e-12);
    const cosine = sum(x.mul(y), -1).div(squares(x).mul(squares(y)).sqrt());
    const alike = keepWhere(cosine.neg().add(1), eq(t, 1));
    const unlike = keepWhere(violation(cosine.sub(margin)), eq(t, -1));
    return reduced(alike.add(unlike), reduction);
  },
);

/** Options of {@link tripletMarginLoss}. */
export interface TripletMarginOptions extends MarginOptions {
  /** Order of the norm. Default 2. */
  readonly p?: number;
  /** Added to each difference. Default 1e-6. */
  readonly eps?: number;
  /** Whether the distance from positive to negative counts where it is the smaller one (Balntas et al. 2016). Default false. */
  readonly swap?: boolean;
}

/**
 * max(0, |anchor − positive| − |anchor − negative| + margin) of vectors along the last axis, as
 * torch.nn.functional.triplet_margin_loss, in float32. The margin is 1 by default.
 */
export const tripletMarginLoss: Composite<
  (anchor: Tensor, positive: Tensor, negative: Tensor, options?: TripletMarginOptions) => Tensor
> = composite(
  {
    name: "tripletMarginLoss",
    castPolicy: "float32",
    parameters: {
      anchor: kinds.tensor,
      positive: kinds.tensor,
      negative: kinds.tensor,
      options: kinds.optionals({
        margin: kinds.number,
        reduction: kinds.reduction,
        p: kinds.nonNegative,
        eps: kinds.number,
        swap: kinds.flag,
      }),
    },
  },
  (
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    { margin = 1, p = 2, eps = 1e-6, swap = false, reduction }: TripletMarginOptions = {},
  ): Tensor => {
    requireSameShape("tripletMarginLoss", { anchor, positive, negative });
    const near = pairwiseDistance(anchor, positive, p, eps);
    const far = pairwiseDistance(anchor, negative, p, eps);
    const least = swap ? minimum(far, pairwiseDistance(positive, negative, p, eps)) : far;
    return reduced(violation(near.sub(least).add(margin)), reduction);
  },
);

/** Options of {@link multiMarginLoss}. */
export interface MultiMarginOptions extends MarginOptions {
  /** Power of each class's violation, 1 or 2. Default 1. */
  readonly p?: 1 | 2;
  /** Factor of each class [classes]. Default: ones. */
  readonly weight?: Tensor;
}

/**
 * Σ max(0, margin − score[label] + score)^p / classes over the other classes, of scores [..., classes] and labels [...] (uint32 or int32), as
 * torch.nn.functional.multi_margin_loss with the classes last, in float32. The margin is 1 by default.
 */
export const multiMarginLoss: Composite<
  (scores: Tensor, labels: Tensor, options?: MultiMarginOptions) => Tensor
> = composite(
  {
    name: "multiMarginLoss",
    castPolicy: "float32",
    parameters: {
      scores: kinds.tensor,
      labels: kinds.tensor,
      options: kinds.optionals({
        margin: kinds.number,
        reduction: kinds.reduction,
        p: kinds.oneOf(1, 2),
        weight: kinds.tensor,
      }),
    },
  },
  (
    scores: Tensor,
    labels: Tensor,
    { margin = 1, p = 1, weight, reduction }: MultiMarginOptions = {},
  ): Tensor => {
    if (p !== 1 && p !== 2)
      throw new RangeError(`multiMarginLoss: p is ${String(p)}, and must be 1 or 2`);
    const rows = rowsOf("multiMarginLoss", float(scores), labels, weight);
    const lead = rows.scores.add(negativeScores(rows, {}).reshape([rows.rows, 1]));
    const violations = lead.add(margin).relu();
    const powers = p === 2 ? violations.square() : violations;
    const others = keepWhere(powers, eq(labelIndicator(rows), 0));
    const losses = sum(others, -1).mul(1 / rows.classes);
    const scaled = weight ? losses.mul(labelWeights(rows, { weight })) : losses;
    return reduced(reduction === "none" ? scaled.reshape(labels.shape) : scaled, reduction);
  },
);

/**
 * Σ max(0, 1 − score[label] + score[other]) / classes over the row's labels and all other classes, as
 * torch.nn.functional.multilabel_margin_loss, in float32. Scores and labels (uint32 or int32) are [..., classes]; the first label of a row
 * that is not a class, such as -1, ends its list.
 */
export const multilabelMarginLoss: Composite<
  (scores: Tensor, labels: Tensor, options?: Pick<MarginOptions, "reduction">) => Tensor
> = composite(
  {
    name: "multilabelMarginLoss",
    castPolicy: "float32",
    parameters: {
      scores: kinds.tensor,
      labels: kinds.tensor,
      options: kinds.optionals({ reduction: kinds.reduction }),
    },
  },
  (
    scores: Tensor,
    labels: Tensor,
    { reduction }: Pick<MarginOptions, "reduction"> = {},
  ): Tensor => {
    requireSameShape("multilabelMarginLoss", { scores, labels });
    const classes = scores.shape.at(-1) ?? 1;
    const x = float(scores).reshape([-1, classes]);
    const counts = labelCounts(indexBits("multilabelMarginLoss", "labels", labels, x.shape));
    const rows = x.shape[0] as number;
    const column = (v: Tensor): Tensor => v.reshape([rows, classes, 1]);
    const row = (v: Tensor): Tensor => v.reshape([rows, 1, classes]);
    const violations = row(x).sub(column(x)).add(1).relu().mul(column(counts));
    const others = keepWhere(violations, row(eq(counts, 0)));
    const losses = sum(others, [1, 2]).mul(1 / classes);
    return reduced(
      reduction === "none" ? losses.reshape(scores.shape.slice(0, -1)) : losses,
      reduction,
    );
  },
);
