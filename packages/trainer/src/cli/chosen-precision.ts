import type { LossScaleFlags } from "../precision.js";

/**
 * The precision of a program that trains in float32 unless it is told otherwise: the one that is named. A flag of the loss scale without
 * a precision means float16, the one precision that needs a loss scale, as in the commands of apex's and BERT's READMEs.
 * @param named by `--precision`, or by a flag that stands for one
 */
export const chosenPrecision = (
  named: string | undefined,
  { staticLossScale, initScale }: LossScaleFlags,
): string => named ?? ((staticLossScale ?? initScale) === undefined ? "float32" : "float16");
