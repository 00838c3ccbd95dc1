import * as kinds from "../../arguments/kinds.js";
import { castTo } from "../../dispatch/cast.js";
import { type Composite, composite } from "../../dispatch/composite.js";
import { ShapeError } from "../../errors.js";
import type { Tensor } from "../../tensor/tensor.js";
import { clamp } from "../activations.js";
import { eq, gt, keepWhere, le, maskedFill } from "../comparison.js";
import { atLeast } from "../distances.js";
import { abs } from "../elementwise.js";
import { unsqueeze } from "../shape.js";
import { sum } from "../sums.js";
import { type ElementLoss, elementLoss, requireSameShape } from "./element-loss.js";
import { type ReductionOptions, reduced } from "./reduction.js";

/** |input − target|, as torch.nn.functional.l1_loss, in float32. */
export const l1Loss: ElementLoss = elementLoss("l1Loss", (x, t) => abs(x.sub(t)));

/** (input − target)², as torch.nn.functional.mse_loss, in float32. */
export const mseLoss: ElementLoss = elementLoss("mseLoss", (x, t) => x.sub(t).square());

/** slope · d²/(2 limit) where the distance d is below `limit`, and slope · (d − limit/2) from there on. */
function bent(distance: Tensor, limit: number, slope: number): Tensor {
  const near = clamp(distance, { max: limit });
  // The factor multiplies the bounded term: the distance itself may be near the largest float32.
  const rise = slope === limit ? near : near.mul(slope / limit);
  return rise.mul(distance.sub(near.mul(0.5)));
}

/** Options of {@link smoothL1Loss}. */
export interface SmoothL1Options extends ReductionOptions {
  /** Distance from which the loss is linear; 0 makes it l1Loss. Default 1. */
  readonly beta?: number;
}

/** d²/(2β) where |input − target| = d < β, else d − β/2, as torch.nn.functional.smooth_l1_loss, in float32. */
export const smoothL1Loss: ElementLoss<SmoothL1Options> = elementLoss<SmoothL1Options>(
  "smoothL1Loss",
  (x, t, { beta = 1 }) => {
    if (!(beta >= 0)) throw new RangeError(`smoothL1Loss: beta is ${beta}, and must be at least 0`);
    const distance = abs(x.sub(t));
    return beta === 0 ? distance : bent(distance, beta, 1);
  },
  { beta: kinds.number },
);

/** Options of {@link huberLoss}. */
export interface HuberOptions extends ReductionOptions {
  /** Distance from which the loss is linear. Default 1. */
  readonly delta?: number;
}

/** d²/2 where |input − target| = d < δ, else δ (d − δ/2), as torch.nn.functional.huber_loss, in float32. */
export const huberLoss: ElementLoss<HuberOptions> = elementLoss<HuberOptions>(
  "huberLoss",
  (x, t, { delta = 1 }) => {
    if (!(delta > 0)) throw new RangeError(`huberLoss: delta is ${delta}, and must be above 0`);
    return bent(abs(x.sub(t)), delta, delta);
  },
  { delta: kinds.number },
);

/** Options of {@link klDiv}. */
export interface KlDivOptions {
  /** "batchMean", which is the definition of the divergence, divides the sum by the first dimension. Default "mean", as in torch. */
  readonly reduction?: ReductionOptions["reduction"] | "batchMean";
  /** Whether the target, too, has logarithms of probabilities. Default false. */
  readonly logTarget?: boolean;
}

/** t · log t; 0 where t is 0. */
const entropyTerm = (t: Tensor): Tensor => t.mul(maskedFill(t, eq(t, 0), 1).log());

/** target · (log target − input) of log-probabilities and probabilities, as torch.nn.functional.kl_div, in float32. */
export const klDiv: Composite<(input: Tensor, target: Tensor, options?: KlDivOptions) => Tensor> =
  composite(
    {
      name: "klDiv",
      castPolicy: "float32",
      parameters: {
        input: kinds.tensor,
        target: kinds.tensor,
        options: kinds.optionals({
          reduction: kinds.oneOf("mean", "sum", "none", "batchMean"),
          logTarget: kinds.flag,
        }),
      },
    },
    (
      input: Tensor,
      target: Tensor,
      { reduction = "mean", logTarget = false }: KlDivOptions = {},
    ): Tensor => {
      requireSameShape("klDiv", { input, target });
      const [x, t] = [castTo(input, "float32"), castTo(target, "float32")];
      const losses = logTarget ? t.exp().mul(t.sub(x)) : entropyTerm(t).sub(t.mul(x));
      if (reduction === "batchMean") return sum(losses).mul(1 / (x.shape[0] ?? 1));
      return reduced(losses, reduction);
    },
  );

/** Options of {@link poissonNllLoss}. */
export interface PoissonNllOptions extends ReductionOptions {
  /** Whether the input is the logarithm of the rate. Default true. */
  readonly logInput?: boolean;
  /** Adds Stirling's approximation of log(target!), where the target is above 1. Default false. */
  readonly full?: boolean;
  /** Added to a rate before its logarithm is taken. Default 1e-8. */
  readonly eps?: number;
}

/** rate − target · log rate, as torch.nn.functional.poisson_nll_loss, in float32. */
export const poissonNllLoss: ElementLoss<PoissonNllOptions> = elementLoss<PoissonNllOptions>(
  "poissonNllLoss",
  (x, t, { logInput = true, full = false, eps = 1e-8 }) => {
    const losses = logInput ? x.exp().sub(t.mul(x)) : x.sub(t.mul(x.add(eps).log()));
    if (!full) return losses;
    const large = maskedFill(t, le(t, 1), 1);
    const stirling = large
      .mul(large.log())
      .sub(large)
      .add(
        large
          .mul(2 * Math.PI)
          .log()
          .mul(0.5),
      );
    return losses.add(keepWhere(stirling, gt(t, 1)));
  },
  { logInput: kinds.flag, full: kinds.flag, eps: kinds.number },
);

/** Options of {@link gaussianNllLoss}. */
export interface GaussianNllOptions extends ReductionOptions {
  /** Adds the constant log(2π)/2. Default false. */
  readonly full?: boolean;
  /** The least variance that counts. Default 1e-6. */
  readonly eps?: number;
}

/** A variance of the shape of the input, or one of each row as [..., 1]. */
function ofRows({ shape }: Tensor, variance: Tensor): Tensor {
  const [given, rows] = [variance.shape.join(), shape.slice(0, -1)];
  if (given === shape.join() || given === [...rows, 1].join()) return variance;
  if (given === rows.join()) return unsqueeze(variance, -1);
  throw new ShapeError(
    `gaussianNllLoss: a variance [${variance.shape}] is neither one of each element of [${shape}] nor one of each row`,
  );
}

/**
 * (log variance + (input − target)² / variance) / 2, as torch.nn.functional.gaussian_nll_loss, in float32. The variance has the shape of
 * the input, or is one of each row: [...] or [..., 1] for an input [..., size].
 */
export const gaussianNllLoss: Composite<
  (input: Tensor, target: Tensor, variance: Tensor, options?: GaussianNllOptions) => Tensor
> = composite(
  {
    name: "gaussianNllLoss",
    castPolicy: "float32",
    parameters: {
      input: kinds.tensor,
      target: kinds.tensor,
      variance: kinds.tensor,
      options: kinds.optionals({ full: kinds.flag, eps: kinds.number, reduction: kinds.reduction }),
    },
  },
  (
    input: Tensor,
    target: Tensor,
    variance: Tensor,
    { full = false, eps = 1e-6, reduction }: GaussianNllOptions = {},
  ): Tensor => {
    requireSameShape("gaussianNllLoss", { input, target });
    const least = atLeast(castTo(ofRows(input, variance), "float32"), eps);
    const squares = castTo(input, "float32").sub(castTo(target, "float32")).square();
    const losses = least.log().add(squares.div(least)).mul(0.5);
    return reduced(full ? losses.add(0.5 * Math.log(2 * Math.PI)) : losses, reduction);
  },
);
