import type { ScaleRule } from "./rule.js";
import type { OverflowOrigin, UnderflowOrigin } from "./step-outcome.js";

/** One gradient of an optimizer, or one flat buffer of many. */
export interface Gradient<B> {
  readonly buffer: B;
  /** The dtype of the elements. A scaler refuses float16: unscaled gradients underflow there. */
  readonly dtype: "float32" | "float16" | "bfloat16";
  /** Bytes from the start of the buffer, a multiple of 256; 0 where absent. */
  readonly offset?: number;
  /** Number of elements; up to the end of the buffer where absent. */
  readonly length?: number;
  /** The name in errors. */
  readonly name?: string;
}

/**
 * The mark of a scaler on a loss and on the gradients computed from it. A scaler makes it; all others pass it on. It exists on the host
 * only, without launches or waits.
 */
export interface ScaleMark {
  /** The scaler of the scale: no other scaler can divide it out. */
  readonly scaler: object;
  /** The index of the scaler's loss. */
  readonly lossId: number;
  /** Identifies the value of the scale; it changes with each update that may change the scale. */
  readonly epoch: number;
  /** Whether the scale was divided out. */
  readonly isUnscaled: boolean;
  /**
   * Whether the rule counts what the stores of this process round to zero (`targetUnderflow`): processes that train together may see other
   * counts, and choose other scales. Default false.
   */
  readonly countsStores?: boolean;
}

/** The origin of a gradient: a loss that a scaler has scaled, or an unscaled one ("plain"). */
export type GradientMark = ScaleMark | "plain";

/** A gradient that is present, and the marks of all backward passes that were added up in it. */
export interface MarkedGradient {
  readonly name: string;
  /** Empty where nothing is known. */
  readonly marks: ReadonlySet<GradientMark>;
}

/** Device buffers by which a scaler controls an optimizer's step, without the host. */
export interface ScaledStep<B> {
  /** One float32. Where it is not 0, the step changes nothing: no parameter, moment, half copy or step count. */
  readonly foundInf?: B;
  /**
   * float32 `[scale, 1 / scale, …]`, given only where gradients still carry the scale: multiply each by element 1, in float32, before
   * any other operation. The result has the same bits as after `unscale`.
   */
  readonly gradScale?: B | undefined;
}

/** The part of an optimizer that a scaler uses. */
export interface ScaledOptimizer<B> {
  /** The gradients that are present. An empty list is a mistake of the training loop. */
  gradients(): Iterable<Gradient<B>>;
  /** Enqueues one update from the gradients. */
  step(options?: ScaledStep<B>): void;
  /** Names of the parameters, shown in the error where none of them has a gradient. */
  parameterNames?(): Iterable<string>;
  /** Clears the gradients; an accumulation window calls it after its step. */
  zeroGrad?(): void;
  /**
   * True where `step` honours `gradScale` (torch's `_step_supports_amp_scaling`). Then `scaler.step(optimizer)` reads the gradients once
   * to check them and lets the optimizer unscale them on the fly: they stay scaled in memory. Without it, `scaler.step(optimizer)`
   * unscales them in place first.
   */
  readonly stepSupportsAmpScaling?: boolean;
  /**
   * The marks of the gradients that are present: the mark passed to `scaleLoss` follows the loss through its backward pass to the
   * gradients. A scaler refuses gradients that do not carry its scale. Without this method it trusts the order of calls.
   */
  gradientMarks?(): Iterable<MarkedGradient>;
  /** Replaces the marks of every present gradient by one mark. Required with {@link gradientMarks}. */
  markGradients?(mark: GradientMark): void;
}

/**
 * Words of a scaler's state buffer, float32
 * `[scale, 1 / scale, growthTracker, hysteresisTracker, stepsSinceRescale, overflowsSinceRescale, 0, 0]`.
 * `1 / scale` is rounded to nearest once, as torch's `scale.double().reciprocal().float()` is: infinite for scales of
 * 2^-128 and less.
 */
export type StateWords = readonly [
  scale: number,
  inverseScale: number,
  growthTracker: number,
  hysteresisTracker: number,
  stepsSinceRescale: number,
  overflowsSinceRescale: number,
  0,
  0,
];

/** Number of float32 words in a scaler's state buffer. */
export const STATE_WORDS = 8;

/**
 * Number of float32 words of a flag. Word 0 is not 0 where something was infinite or NaN. Word 1 passes from `check` to `updateScale`
 * whether gradients were checked and all were 0; implementations choose its encoding, or leave it unused.
 */
export const FLAG_WORDS = 2;

/** Number of outcomes in a ring. */
export const OUTCOME_RING = 256;

/** Number of float32 words of one outcome; see {@link OutcomeWords}. */
export const OUTCOME_WORDS = 8;

/** One outcome as the device records it. */
export type OutcomeWords = readonly [
  /** Identifies the outcome; see {@link ScaleUpdate.tag}. */
  tag: number,
  /** Σ 2^i over the optimizers i with a non-finite gradient. */
  overflows: number,
  scaleBefore: number,
  scaleAfter: number,
  /** 1 where a loss was infinite or NaN before it was scaled, plus 2 where the scale should have backed off and could not. */
  causes: number,
  /** The 2-norm of the gradients, unscaled, to float32 accuracy; -1 where it was not requested, and any number after an overflow. */
  gradientNorm: number,
  /** The share of non-zero gradients that underflow, to float32 accuracy; -1 where exponents were not counted. */
  underflow: number,
  /** 1 where gradients were checked and every element was 0; 0 where one was not, or where it is not known. */
  allZero: 0 | 1,
];

/** One update of the scale on the device. */
export interface ScaleUpdate<B> {
  /** The {@link STATE_WORDS} words to update in place. */
  readonly state: B;
  /**
   * A flag of {@link FLAG_WORDS} words for each optimizer of this step, at most 24: the first word is not 0 where a gradient was not
   * finite. Cleared to 0.
   */
  readonly foundInfs: readonly B[];
  readonly rule: ScaleRule;
  /** Replaces the scale by this number instead of applying the rule; the trackers do not change. */
  readonly newScale?: number | undefined;
  /** The flag that `scaleLoss` sets. Cleared to 0. */
  readonly lossFlag: B;
  /** The sums that `check` and `unscale` added to. Cleared to 0. */
  readonly squares?: B | undefined;
  /** The counts of `countExponents` in this step, `EXPONENT_WORDS` words, for a rule with `targetUnderflow`. Cleared to 0. */
  readonly exponents?: B | undefined;
  /** The ring of {@link OUTCOME_RING} outcomes of {@link OUTCOME_WORDS} words each. */
  readonly outcomes: B;
  /**
   * An integer from 1 to 2^24 that names the outcome, which goes to slot `(tag - 1) % 256` of the ring; 0 records none.
   */
  readonly tag: number;
}

/** The sum of squares to which `check` adds, and the state with the scale to divide by before squaring. */
export interface SquareSum<B> {
  /** `normPartials` words. */
  readonly squares: B;
  readonly state: B;
}

/**
 * Gets whether a step had a non-finite gradient, and whether all its gradients were 0. Returns the origin if it is known: an {@link
 * OverflowOrigin} or an {@link UnderflowOrigin}. Called once, or never if the outcome is lost.
 */
export type OriginFinder = (
  foundInf: boolean,
  allZero: boolean,
) => Origin | undefined | Promise<Origin | undefined>;

/** The origin of an overflow or underflow in a step. */
export type Origin = OverflowOrigin | UnderflowOrigin;

/**
 * The few operations that loss scaling needs, over any buffer type `B` (`GPUBuffer`, `Float32Array`, the storage of a recorded tensor)
 * and any loss type `L`. None waits for the device: all are enqueued and take effect in program order. `ampPrimitivesContract` in
 * `@halfstep/grad-scaler/testing` tests an implementation.
 *
 * Optional operations make optional features: without `countExponents` there is no `targetUnderflow`, without
 * `rescale` and `combine` no second loss scale, and without `normPartials` outcomes have no gradient norm.
 */
export interface AmpPrimitives<B, L = B> {
  /** Allocates a buffer of `length` float32 zeros, which outlives the step (or recording) in which it is made. */
  allocate(length: number): B;
  /** Overwrites a state buffer. */
  writeState(state: B, words: StateWords): void;
  /**
   * `(loss × weight) × state[0]` in float32, for every dtype and shape of the loss. Sets `lossFlag[0]` to 1 where an element of the loss
   * is ±infinity or NaN, and otherwise leaves it. An implementation with a backward pass of its own puts `mark` on the gradients (see
   * {@link ScaledOptimizer.gradientMarks}); others ignore it. The mark is absent where the scale is known to be 1.
   */
  scaleLoss(
    loss: L,
    state: B,
    options: {
      readonly weight: number;
      readonly lossFlag: B;
      readonly mark?: ScaleMark | undefined;
    },
  ): L;
  /**
   * Sets `foundInf[0]` to 1 where any element of any gradient is ±infinity or NaN, and otherwise leaves it. An implementation tests the
   * bits: the largest finite float16, bfloat16 or float32 does not count. `foundInf[1]` may record whether all elements were 0, for the
   * outcome. With `sum`, adds Σ (gradient × state[1])² to its words. Their form is private to the implementation, and must represent
   * squares beyond the range of float32.
   */
  check(gradients: readonly Gradient<B>[], foundInf: B, sum?: SquareSum<B>): void;
  /**
   * {@link check} of the elements, and then each × `state[1]` in place, in float32, rounded to the storage. The results of non-finite
   * elements are not specified. With `squares`, adds Σ (gradient × state[1])² to its words as {@link check} does.
   */
  unscale(gradients: readonly Gradient<B>[], state: B, foundInf: B, squares?: B): void;
  /** Number of words of the sums of squares, such as one for each thread that sums. */
  readonly normPartials?: number;
  /**
   * Adds to `exponents[k]` the number of elements with the float32 exponent field k: 256 counts, in any representation. Four words of
   * store observers follow, with the numbers that stores of the backward pass rounded to zero: see `EXPONENT_WORDS`.
   */
  countExponents?(gradients: readonly Gradient<B>[], exponents: B): void;
  /**
   * {@link check}, and then each element × `from[1]` × `to[0]` in place, each product rounded to float32: converts gradients from one
   * loss's scale to another's. Non-finite elements become 0, so that they count for one loss only.
   */
  rescale?(gradients: readonly Gradient<B>[], from: B, to: B, foundInf: B): void;
  /** Sets `into[0]` to 1 where any of the flags is not 0, and otherwise to 0. */
  combine?(flags: readonly B[], into: B): void;
  /**
   * Equals `nextScaleState` bit for bit: `foundInf` is true where any of `foundInfs` is not 0. Under torch's rule scales become
   * subnormal and then 0. GPU arithmetic may flush subnormal numbers, so multiply in integers there. Words of the state that the rule
   * does not use do not change.
   */
  updateScale(update: ScaleUpdate<B>): void;
  /**
   * Called by `update()`, while the step is still open. The returned function is called with the outcome once it is known, and may
   * return the origin of a non-finite gradient (provenance).
   */
  watchStep?(): OriginFinder;
  /** A copy of a buffer made by {@link allocate}, after all operations that were enqueued before this call. */
  read(buffer: B): Promise<Float32Array>;
  /**
   * Only where enqueued work can be dropped before it runs (a recording whose callback throws): keeps `undo` until the work runs; for
   * dropped work it calls them, newest first.
   */
  onRollback?(undo: () => void): void;
  /** Only there, too: throws while such work is open, for a `call` that changes what could not be restored if it is dropped. */
  requireNoStep?(call: string): void;
}
