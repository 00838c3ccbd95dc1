import type { Binding, LaunchTarget } from "@halfstep/device";
import { requireLengths, requireTarget } from "../operands.js";
import { scratch } from "../scratch.js";
import { partsOf } from "./crf-kernel.js";
import { emissionKernel } from "./emission-gradient.js";
import { marginalKernel } from "./marginals.js";
import { type CrfOperands, type CrfShape, given, requireCrf, scalarsOf } from "./shape.js";
import { pairKernel, sumKernel } from "./transition-gradient.js";

/** Operands of the gradients of a conditional random field. */
export interface CrfLossBackwardOperands<B> extends CrfOperands<B> {
  readonly tags?: Binding<B> | undefined;
  /** The alphas of `crfLoss`. */
  readonly alphas: Binding<B>;
  /** [batch] */
  readonly lossGradient: Binding<B>;
  /** [batch, length, tags]; zeros where the mask is 0. */
  readonly emissionGradient: Binding<B>;
  /** float32 [tags] */
  readonly startGradient: Binding<B>;
  /** float32 [tags] */
  readonly endGradient: Binding<B>;
  /** float32 [from, to] */
  readonly transitionGradient: Binding<B>;
}

/**
 * The gradients of `crfLoss`: the probabilities of tags and of pairs of tags, minus one at the given tags, in four
 * launches. The backward recursion uses the probabilities of the forward algorithm's transitions, so that nothing
 * overflows and no logarithm is needed. Sums over the batch have a fixed order.
 */
export function crfLossBackward<B>(
  target: LaunchTarget<B>,
  operands: CrfLossBackwardOperands<B>,
  shape: CrfShape,
): void {
  requireTarget("crfLossBackward", target);
  requireCrf("crfLossBackward", operands, shape);
  const { emissions, end, transitions, tags, mask, alphas, lossGradient } = operands;
  const { emissionGradient, startGradient, endGradient, transitionGradient } = operands;
  const { batch, length, numTags } = shape;
  const elements = batch * length * numTags;
  requireLengths(
    "crfLossBackward",
    {
      tags,
      alphas,
      lossGradient,
      emissionGradient,
      startGradient,
      endGradient,
      transitionGradient,
    },
    {
      tags: batch * length,
      alphas: elements,
      lossGradient: batch,
      emissionGradient: elements,
      startGradient: numTags,
      endGradient: numTags,
      transitionGradient: numTags ** 2,
    },
  );
  const parts = partsOf(operands, shape);
  // Programs with one invocation for each number do not depend on the number of tags.
  const flatParts = { ...parts, isWide: false };
  const scalars = scalarsOf(shape);
  const [marginals, drops] = [scratch(target, elements), scratch(target, elements)];
  target.launch({
    kernel: marginalKernel({ ...parts, hasTags: false }),
    bindings: [emissions, end, transitions, ...given(mask), alphas, lossGradient, marginals, drops],
    scalars,
  });
  target.launch({
    kernel: emissionKernel(flatParts),
    bindings: [marginals, ...given(tags, mask), lossGradient, emissionGradient],
    scalars,
  });
  const cells = (numTags + 2) * numTags;
  const groups = Math.max(1, Math.min(batch, Math.floor(maxPartials / cells)));
  const partials = scratch(target, groups * cells);
  target.launch({
    kernel: pairKernel(flatParts),
    bindings: [marginals, drops, alphas, transitions, ...given(tags, mask), lossGradient, partials],
    scalars: { ...scalars, groups },
  });
  target.launch({
    kernel: sumKernel,
    bindings: [partials, transitionGradient, startGradient, endGradient],
    scalars: { tags: numTags, groups },
  });
}

/** Largest number of partial sums of a batch. */
const maxPartials = 2 ** 20;
