import type { Launch } from "@halfstep/device";
import { underflowShare } from "@halfstep/grad-scaler";
import { underflowWgsl } from "@halfstep/grad-scaler/wgsl";
import {
  launchScaleUpdate,
  type ScaleUpdateAttributes,
  type ScaleUpdateOperands,
  scaleKernels,
} from "./update-scale.js";

const kernels = scaleKernels({ wgsl: underflowWgsl, share: underflowShare });

/**
 * One update of a loss scale by its rule, on the device: `nextScaleState` of `@halfstep/grad-scaler` bit for bit.
 *
 * - `state`: float32 `[scale, 1 / scale, growthTracker, hysteresisTracker, stepsSinceRescale, overflowsSinceRescale, …]`, the
 *   reciprocal rounded to nearest once.
 * - `foundInf`: one float32, not 0 where gradients were not finite, or, with `isMask`, the sum of 2^i over the optimizers i from {@link
 *   gatherFoundInf}. A second word is set by `checkFinite` and similar kernels. `lossFlag`: one float32, not 0 where a loss was not finite.
 *   Both are cleared.
 * - `squares`: partial sums of squares that `checkFinite` and `unscale` made, of which the first `partials` (a multiple of 4) are added up
 *   and cleared.
 * - `exponents`: the `EXPONENT_WORDS` uint32 words of `@halfstep/grad-scaler`, by which a rule with `targetUnderflow` decides, and which are cleared.
 * - `outcomes`: a ring of 256 outcomes of eight float32 `[tag, mask, scale before, scale after, 1 where a loss was not finite +
 *   2 where the scale could not back off, norm or -1, share that underflows or -1, 1 where all gradients were 0]`; outcome `tag` goes to slot
 *   `(tag - 1) % 256`, and tag 0 to none.
 * - `newScale` replaces the scale instead of applying the rule.
 */
export const updateScale = <B>(
  operands: ScaleUpdateOperands<B>,
  attributes: ScaleUpdateAttributes,
): Launch<B> =>
  launchScaleUpdate(operands, attributes, operands.exponents === undefined ? undefined : kernels);
