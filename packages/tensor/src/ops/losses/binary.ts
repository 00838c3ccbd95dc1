import { type CastPolicy, torchCastPolicies } from "@halfstep/autocast";
import * as kinds from "../../arguments/kinds.js";
import { castTo } from "../../dispatch/cast.js";
import { type Composite, composite } from "../../dispatch/composite.js";
import { defineFunction } from "../../dispatch/function.js";
import type { Tensor } from "../../tensor/tensor.js";
import { clamp } from "../activations.js";
import { keepWhere, ne } from "../comparison.js";
import { log1p, softplus } from "../transcendental.js";
import { type ElementLoss, elementLoss, requireSameShape } from "./element-loss.js";
import { type ReductionOptions, reduced } from "./reduction.js";

/** Options of {@link binaryCrossEntropy}. */
export interface BinaryOptions extends ReductionOptions {
  /** Factor of each element's loss; broadcasts. Default: ones. */
  readonly weight?: Tensor;
}

/** Options of {@link binaryCrossEntropyWithLogits}. */
export interface BinaryLogitsOptions extends BinaryOptions {
  /** Factor of the losses of positive targets; broadcasts, as one for each class on the last axis. Default: ones. */
  readonly posWeight?: Tensor;
}

const weighted = (losses: Tensor, { weight, reduction }: BinaryOptions): Tensor =>
  reduced(weight ? losses.mul(castTo(weight, losses.dtype)) : losses, reduction);

/**
 * −target · log σ(input) − (1 − target) · log(1 − σ(input)) of logits, as torch.nn.functional.binary_cross_entropy_with_logits, in
 * float32. It is finite for every finite logit.
 */
export const binaryCrossEntropyWithLogits: Composite<
  (input: Tensor, target: Tensor, options?: BinaryLogitsOptions) => Tensor
> = composite(
  {
    name: "binaryCrossEntropyWithLogits",
    castPolicy: "float32",
    parameters: {
      input: kinds.tensor,
      target: kinds.tensor,
      options: kinds.optionals({
        weight: kinds.tensor,
        posWeight: kinds.tensor,
        reduction: kinds.reduction,
      }),
    },
  },
  (input: Tensor, target: Tensor, options: BinaryLogitsOptions = {}): Tensor => {
    requireSameShape("binaryCrossEntropyWithLogits", { input, target });
    const [x, t] = [castTo(input, "float32"), castTo(target, "float32")];
    const { posWeight } = options;
    const surprise = softplus(x.neg());
    const scaled = posWeight
      ? surprise.mul(t.mul(castTo(posWeight, "float32").sub(1)).add(1))
      : surprise;
    return weighted(t.neg().add(1).mul(x).add(scaled), options);
  },
);

/** Logarithms are bounded here, as in torch, so that a certain and wrong probability costs 100 and not infinity. */
const leastLog = { min: -100 };

const elementLosses = defineFunction({
  name: "binaryCrossEntropy",
  forward(context, p: Tensor, t: Tensor) {
    context.save(p, t);
    const positive = t.mul(clamp(p.log(), leastLog));
    const negative = t
      .neg()
      .add(1)
      .mul(clamp(log1p(p.neg()), leastLog));
    return positive.add(negative).neg();
  },
  backward({ saved, needs }, g) {
    const [p, t] = saved as [Tensor, Tensor];
    const spread = (): Tensor => clamp(p.mul(p.neg().add(1)), { min: 1e-12 });
    const odds = (): Tensor => clamp(log1p(p.neg()), leastLog).sub(clamp(p.log(), leastLog));
    return [
      needs[0] ? g.mul(p.sub(t)).div(spread()) : undefined,
      needs[1] ? g.mul(odds()) : undefined,
    ];
  },
});

/**
 * −target · log input − (1 − target) · log(1 − input) of probabilities, as torch.nn.functional.binary_cross_entropy, in the dtype of
 * its operands. Refused under autocast, as there: a probability that rounds to 0 or 1 in 16 bits has lost its logarithm.
 *
 * @throws DTypeError under autocast; use {@link binaryCrossEntropyWithLogits}.
 */
export const binaryCrossEntropy: Composite<
  (input: Tensor, target: Tensor, options?: BinaryOptions) => Tensor
> = composite(
  {
    name: "binaryCrossEntropy",
    castPolicy: torchCastPolicies.binaryCrossEntropy as CastPolicy,
    parameters: {
      input: kinds.tensor,
      target: kinds.tensor,
      options: kinds.optionals({ weight: kinds.tensor, reduction: kinds.reduction }),
    },
  },
  (input: Tensor, target: Tensor, options: BinaryOptions = {}): Tensor => {
    requireSameShape("binaryCrossEntropy", { input, target });
    return weighted(elementLosses(input, castTo(target, input.dtype)), options);
  },
);

/** log(1 + exp(−target · input)) with targets of 1 and −1, as torch.nn.functional.soft_margin_loss, in float32. */
export const softMarginLoss: ElementLoss = elementLoss("softMarginLoss", (x, t) =>
  softplus(t.mul(x).neg()),
);

/** Options of losses with a margin. */
export interface MarginOptions extends ReductionOptions {
  /** Distance at which the loss becomes 0. */
  readonly margin?: number;
}

/**
 * The input where the target is 1, max(0, margin − input) where it is −1, as torch.nn.functional.hinge_embedding_loss, in float32.
 * The margin is 1 by default.
 */
export const hingeEmbeddingLoss: ElementLoss<MarginOptions> = elementLoss<MarginOptions>(
  "hingeEmbeddingLoss",
  (x, t, { margin = 1 }) =>
    keepWhere(clamp(x.neg().add(margin), { min: 0 }), ne(t, 1)).add(keepWhere(x, ne(t, -1))),
  { margin: kinds.number },
);
