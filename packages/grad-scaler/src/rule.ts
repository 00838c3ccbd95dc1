/**
 * How a loss scale reacts to steps with and without overflow: plain data, saved beside the state but apart from it.
 *
 * Numbers are float32: {@link scalerRule} rounds them, so that every implementation multiplies by the same bits. (torch
 * holds the factors in float64: a factor that float32 cannot represent may differ from torch in the last bit.)
 */
export interface ScaleRule {
  /** The scale to start from; positive and finite. */
  readonly initScale: number;
  /** False for a static scale: steps with non-finite gradients are still skipped, but the scale never changes. */
  readonly dynamic: boolean;
  /** The scale is multiplied by this after `growthInterval` clean steps; more than 1. A product that overflows is not taken. */
  readonly growthFactor: number;
  /** The scale is multiplied by this on overflow; between 0 and 1. */
  readonly backoffFactor: number;
  /** Clean steps in a row before the scale grows; an integer from 1 to 2^24. */
  readonly growthInterval: number;
  /** Torch's rule: a growth tracker that is already beyond the interval (loaded, say) never grows the scale again. */
  readonly exactInterval: boolean;
  /** The scale backs off on this many-th overflow since the last refill and on each after it; 1 is "at once". */
  readonly hysteresis: number;
  /** What refills the hysteresis tracker: every clean step (apex), or only growth (Megatron). */
  readonly hysteresisRefill: "clean" | "growth";
  /** Backing off never goes below this; 0 is no floor. */
  readonly minScale: number;
  /** Growth never goes above this; the largest float32 is no ceiling. */
  readonly maxScale: number;
}

/** What changes from step to step. Every number is exact in float32. */
export interface ScaleState {
  readonly scale: number;
  /** Clean steps since the scale last grew or an overflow was seen. */
  readonly growthTracker: number;
  /** Overflows that are still tolerated; absent where `hysteresis` is 1. */
  readonly hysteresisTracker?: number;
}
