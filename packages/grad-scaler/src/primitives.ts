import type { ScaleRule } from "./rule.js";

/** One gradient of an optimizer, or one flat buffer of many. */
export interface Gradient<B> {
  readonly buffer: B;
  /** How the elements are stored. A scaler refuses float16: unscaled gradients underflow there. */
  readonly dtype: "float32" | "float16" | "bfloat16";
  /** Bytes from the start of the buffer, a multiple of 256; 0 where absent. */
  readonly offset?: number;
  /** Number of elements; up to the end of the buffer where absent. */
  readonly length?: number;
  /** Shown in errors. */
  readonly name?: string;
}

/** What a scaler tells an optimizer to do on the device, without the host knowing. */
export interface ScaledStep<B> {
  /** One float32. Where it is not 0, the step changes nothing: no parameter, moment, half copy or step count. */
  readonly foundInf?: B;
  /**
   * float32 `[scale, 1 / scale, …]`, given only where gradients still carry the scale: multiply each by element 1, in
   * float32, before anything else is done with it. That gives the bits that `unscale` would have left.
   */
  readonly gradScale?: B;
}

/** The part of an optimizer that a scaler uses. */
export interface ScaledOptimizer<B> {
  /** The gradients that are present. None at all is an error of the training loop. */
  gradients(): Iterable<Gradient<B>>;
  /** One update from the gradients, enqueued. */
  step(options?: ScaledStep<B>): void;
  /**
   * True where `step` honours `gradScale` (torch's `_step_supports_amp_scaling`). Then `scaler.step(optimizer)` reads
   * the gradients once to check them and lets the optimizer unscale them on the fly: they stay scaled in memory. Where
   * it is absent, `scaler.step(optimizer)` unscales them in place first.
   */
  readonly stepSupportsAmpScaling?: boolean;
}

/**
 * Words of a scaler's state buffer, float32 `[scale, 1 / scale, growthTracker, hysteresisTracker]`.
 * `1 / scale` is rounded to nearest once, as torch's `scale.double().reciprocal().float()` is: infinite for scales of
 * 2^-128 and less.
 */
export type StateWords = readonly [
  scale: number,
  inverseScale: number,
  growthTracker: number,
  hysteresisTracker: number,
];

/** Number of float32 words in a scaler's state buffer. */
export const STATE_WORDS = 4;

/** How many outcomes a ring holds. */
export const OUTCOME_RING = 256;

/** Number of float32 words of one outcome: `[tag, flags, scaleBefore, scaleAfter]`. */
export const OUTCOME_WORDS = 4;

/** One update of the scale on the device. */
export interface ScaleUpdate<B> {
  /** The {@link STATE_WORDS} words to update in place. */
  readonly state: B;
  /** One float32 for each optimizer of this step, at most 24: not 0 where it met a non-finite gradient. Cleared to 0. */
  readonly foundInfs: readonly B[];
  readonly rule: ScaleRule;
  /** Replaces the scale by this number instead of applying the rule; the trackers stay as they are. */
  readonly newScale?: number;
  /** The ring of {@link OUTCOME_RING} outcomes of {@link OUTCOME_WORDS} words each. */
  readonly outcomes: B;
  /**
   * An integer from 1 to 2^24 that names the outcome; 0 records none. The outcome goes to slot `(tag - 1) % 256` as
   * `[tag, Σ 2^i over the optimizers i that met a non-finite gradient, scale before, scale after]`.
   */
  readonly tag: number;
}

/**
 * The few operations that loss scaling needs, over any buffer type `B` (`GPUBuffer`, `Float32Array`, the storage of a
 * recorded tensor) and any loss type `L`. None waits for the device: each is enqueued, and they take effect in program
 * order. `ampPrimitivesContract` in `@halfstep/grad-scaler/testing` tests an implementation.
 */
export interface AmpPrimitives<B, L = B> {
  /** A new buffer of `length` float32 zeros, which outlives the step (or recording) in which it is made. */
  allocate(length: number): B;
  /** Overwrites a state buffer. */
  writeState(state: B, words: StateWords): void;
  /** `loss × state[0]` in float32, whatever the dtype and shape of the loss. */
  scaleLoss(loss: L, state: B): L;
  /**
   * Sets `foundInf[0]` to 1 where any element of any gradient is ±infinity or NaN, and else leaves it. An
   * implementation tests the bits: the largest finite float16, bfloat16 or float32 does not count.
   */
  check(gradients: readonly Gradient<B>[], foundInf: B): void;
  /**
   * {@link check} of the elements as they come in, and then each × `state[1]` in place, in float32, rounded to the
   * storage. What becomes of non-finite elements is not specified.
   */
  unscale(gradients: readonly Gradient<B>[], state: B, foundInf: B): void;
  /**
   * Equals `nextScaleState` bit for bit: `foundInf` is true where any of `foundInfs` is not 0. Scales pass through the
   * subnormal numbers to 0 under torch's rule, and arithmetic of a GPU may flush those, so multiply in integers there.
   * Where `rule.hysteresis` is 1, `state[3]` is left as it is.
   */
  updateScale(update: ScaleUpdate<B>): void;
  /** A copy of a buffer made by {@link allocate}, as it is after everything that was enqueued before this call. */
  read(buffer: B): Promise<Float32Array>;
  /**
   * Only where enqueued work can be dropped before it runs (a recording whose callback throws): keeps `undo` until
   * the work runs, and calls those of dropped work newest first.
   */
  onRollback?(undo: () => void): void;
}
