import {
  type GradientMark,
  type MarkedGradient,
  type ScaleMark,
  ScalerStateError,
} from "@halfstep/grad-scaler";
import type { FlatTensors } from "./flat-tensors.js";

/** The present gradients of flat buffers, each with its marks of loss scales, as far as known. */
export function* markedGradients<B>(
  all: Iterable<FlatTensors<B>>,
): Generator<MarkedGradient, undefined> {
  for (const params of all) {
    if (!params.gradientMarks) continue;
    for (const [i, { name }] of params.segments.entries())
      if (params.hasGradient?.(i) ?? true) yield { name, marks: params.gradientMarks(i) };
  }
}

/** An object whose gradients may carry a loss scale. */
interface Marked {
  gradientMarks?(): Iterable<MarkedGradient>;
}

const isScale = (mark: GradientMark): mark is ScaleMark => mark !== "plain" && !mark.isUnscaled;

/** Refuses an update by gradients that still carry a loss scale. */
export function refuseScaledStep(optimizer: Marked): void {
  for (const { name, marks } of optimizer.gradientMarks?.() ?? [])
    if (someMark(marks, isScale))
      throw new ScalerStateError(
        "step-without-scaler",
        `the gradient of "${name}" carries a loss scale, by which step() would make the update too large: call scaler.step(optimizer), or scaler.unscale(optimizer) first`,
      );
}

/**
 * Refuses clipping of scaled gradients without the scale, and of unscaled ones with it.
 *
 * @param hasScale whether the caller has given the scale to divide by.
 */
export function refuseScaledClip(optimizer: Marked, hasScale: boolean): void {
  const isWrong = (mark: GradientMark): boolean =>
    hasScale ? mark !== "plain" && mark.isUnscaled : isScale(mark);
  for (const { name, marks } of optimizer.gradientMarks?.() ?? [])
    if (someMark(marks, isWrong))
      throw hasScale
        ? new ScalerStateError(
            "double-unscale",
            `the gradient of "${name}" is unscaled already: leave out gradScale`,
          )
        : new ScalerStateError(
            "clip-before-unscale",
            `the gradient of "${name}" carries a loss scale, and clipping would compare it with the limit: call scaler.unscale(optimizer) first`,
          );
}

function someMark(
  marks: ReadonlySet<GradientMark>,
  test: (mark: GradientMark) => boolean,
): boolean {
  for (const mark of marks) if (test(mark)) return true;
  return false;
}
