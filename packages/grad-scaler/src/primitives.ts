import type { ScaleRule } from "./rule.js";
import type { OverflowOrigin, UnderflowOrigin } from "./step-outcome.js";

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

/**
 * What a loss, and the gradients made from it, carry of a scaler. A scaler makes it; everybody else passes it on. It is
 * known on the host alone: no launch and no wait goes with it.
 */
export interface ScaleMark {
  /** Whose scale it is: no other scaler can divide it out. */
  readonly scaler: object;
  /** Which of the scaler's losses. */
  readonly lossId: number;
  /** Which value of the scale: another one after each update that may have changed it. */
  readonly epoch: number;
  /** Whether the scale was divided out again. */
  readonly isUnscaled: boolean;
}

/** Where a gradient comes from: a loss that a scaler has scaled, or one that nobody has. */
export type GradientMark = ScaleMark | "plain";

/** A gradient that is present, and the marks of all backward passes that were added up in it. */
export interface MarkedGradient {
  readonly name: string;
  /** Empty where nothing is known. */
  readonly marks: ReadonlySet<GradientMark>;
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
  /** Names of the parameters, shown in the error where none of them has a gradient. */
  parameterNames?(): Iterable<string>;
  /** Clears the gradients: what an accumulation window calls once they are used. */
  zeroGrad?(): void;
  /**
   * True where `step` honours `gradScale` (torch's `_step_supports_amp_scaling`). Then `scaler.step(optimizer)` reads
   * the gradients once to check them and lets the optimizer unscale them on the fly: they stay scaled in memory. Where
   * it is absent, `scaler.step(optimizer)` unscales them in place first.
   */
  readonly stepSupportsAmpScaling?: boolean;
  /**
   * The marks of the gradients that are present: what `scaleLoss` was given goes with the loss into its backward pass, and
   * from there to the gradients. A scaler refuses gradients that do not carry its scale. Absent: it cannot know, and trusts
   * the order of calls.
   */
  gradientMarks?(): Iterable<MarkedGradient>;
  /** Puts one mark in the place of all others, on every gradient that is present. Goes with {@link gradientMarks}. */
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
 * Number of float32 words of a flag. Word 0 is not 0 where something was infinite or NaN. Word 1 is for `check` to tell
 * `updateScale` whether gradients were looked at and all were 0: in whichever way, or not at all.
 */
export const FLAG_WORDS = 2;

/** How many outcomes a ring holds. */
export const OUTCOME_RING = 256;

/** Number of float32 words of one outcome; see {@link OutcomeWords}. */
export const OUTCOME_WORDS = 8;

/** One outcome as the device records it. */
export type OutcomeWords = readonly [
  /** Which outcome this is; see {@link ScaleUpdate.tag}. */
  tag: number,
  /** Σ 2^i over the optimizers i that met a non-finite gradient. */
  overflows: number,
  scaleBefore: number,
  scaleAfter: number,
  /** 1 where a loss was infinite or NaN before it was scaled, plus 2 where the scale should have backed off and could not. */
  causes: number,
  /** The 2-norm of the gradients, unscaled, to float32 accuracy; -1 where nobody asked, and any number after an overflow. */
  gradientNorm: number,
  /** The share of non-zero gradients that underflow, to float32 accuracy; -1 where exponents were not counted. */
  underflow: number,
  /** 1 where gradients were checked and every element was 0; 0 where one was not, or nobody tells. */
  allZero: 0 | 1,
];

/** One update of the scale on the device. */
export interface ScaleUpdate<B> {
  /** The {@link STATE_WORDS} words to update in place. */
  readonly state: B;
  /**
   * A flag of {@link FLAG_WORDS} words for each optimizer of this step, at most 24: the first word is not 0 where it met a
   * non-finite gradient. Cleared to 0.
   */
  readonly foundInfs: readonly B[];
  readonly rule: ScaleRule;
  /** Replaces the scale by this number instead of applying the rule; the trackers stay as they are. */
  readonly newScale?: number;
  /** The flag that `scaleLoss` sets. Cleared to 0. */
  readonly lossFlag: B;
  /** The sums that `check` and `unscale` added to. Cleared to 0. */
  readonly squares?: B;
  /** What `countExponents` counted in this step: `EXPONENT_WORDS` counts, for a rule with `targetUnderflow`. Cleared to 0. */
  readonly exponents?: B;
  /** The ring of {@link OUTCOME_RING} outcomes of {@link OUTCOME_WORDS} words each. */
  readonly outcomes: B;
  /**
   * An integer from 1 to 2^24 that names the outcome, which goes to slot `(tag - 1) % 256` of the ring; 0 records none.
   */
  readonly tag: number;
}

/** The sum of squares that `check` adds to, and what to unscale the gradients with before they are squared. */
export interface SquareSum<B> {
  /** `normPartials` words. */
  readonly squares: B;
  readonly state: B;
}

/**
 * Told whether a step met a non-finite gradient, and whether all its gradients were 0; says where that began, if it knows: an
 * {@link OverflowOrigin} of the one, an {@link UnderflowOrigin} of the other. Called once, or never if the outcome is lost.
 */
export type OriginFinder = (
  foundInf: boolean,
  allZero: boolean,
) => Origin | undefined | Promise<Origin | undefined>;

/** Where something went wrong in a step. */
export type Origin = OverflowOrigin | UnderflowOrigin;

/**
 * The few operations that loss scaling needs, over any buffer type `B` (`GPUBuffer`, `Float32Array`, the storage of a
 * recorded tensor) and any loss type `L`. None waits for the device: each is enqueued, and they take effect in program
 * order. `ampPrimitivesContract` in `@halfstep/grad-scaler/testing` tests an implementation.
 *
 * Optional operations make optional features: without `countExponents` there is no `targetUnderflow`, without
 * `rescale` and `combine` no second loss scale, and without `normPartials` outcomes have no gradient norm.
 */
export interface AmpPrimitives<B, L = B> {
  /** A new buffer of `length` float32 zeros, which outlives the step (or recording) in which it is made. */
  allocate(length: number): B;
  /** Overwrites a state buffer. */
  writeState(state: B, words: StateWords): void;
  /**
   * `(loss × weight) × state[0]` in float32, whatever the dtype and shape of the loss. Sets `lossFlag[0]` to 1 where an
   * element of the loss is ±infinity or NaN, and else leaves it. An implementation with a backward pass of its own has it
   * leave `mark` on the gradients (see {@link ScaledOptimizer.gradientMarks}); others ignore it. It is absent where the
   * scale is known to be 1.
   */
  scaleLoss(
    loss: L,
    state: B,
    options: { readonly weight: number; readonly lossFlag: B; readonly mark?: ScaleMark },
  ): L;
  /**
   * Sets `foundInf[0]` to 1 where any element of any gradient is ±infinity or NaN, and else leaves it. An
   * implementation tests the bits: the largest finite float16, bfloat16 or float32 does not count. `foundInf[1]` may
   * gather whether all elements were 0, for the outcome. With `sum`, adds Σ (gradient × state[1])² to its words, in a form that nobody
   * else reads, and that holds also the squares that float32 does not.
   */
  check(gradients: readonly Gradient<B>[], foundInf: B, sum?: SquareSum<B>): void;
  /**
   * {@link check} of the elements as they come in, and then each × `state[1]` in place, in float32, rounded to the
   * storage. What becomes of non-finite elements is not specified. With `squares`, adds Σ (gradient × state[1])² to its words as
   * {@link check} does.
   */
  unscale(gradients: readonly Gradient<B>[], state: B, foundInf: B, squares?: B): void;
  /** How many words the sums of squares take: as many as there are threads that sum, say. */
  readonly normPartials?: number;
  /**
   * Adds to `exponents[k]` how many elements have the float32 exponent field k. 256 counts, in any representation, behind which are four
   * words of what the stores of the backward pass rounded to zero, for those who observe them: see `EXPONENT_WORDS`.
   */
  countExponents?(gradients: readonly Gradient<B>[], exponents: B): void;
  /**
   * {@link check}, and then each element × `from[1]` × `to[0]` in place, each product rounded to float32: gradients that
   * carried one loss's scale carry another's. Non-finite elements become 0, so that they are counted against one loss only.
   */
  rescale?(gradients: readonly Gradient<B>[], from: B, to: B, foundInf: B): void;
  /** Sets `into[0]` to 1 where any of the flags is not 0, and else to 0. */
  combine?(flags: readonly B[], into: B): void;
  /**
   * Equals `nextScaleState` bit for bit: `foundInf` is true where any of `foundInfs` is not 0. Scales pass through the
   * subnormal numbers to 0 under torch's rule, and arithmetic of a GPU may flush those, so multiply in integers there.
   * Words of the state that the rule does not use are left as they are.
   */
  updateScale(update: ScaleUpdate<B>): void;
  /**
   * Called by `update()`, while the step is still open. What it returns is called with the outcome once that is known, and
   * may say where a non-finite gradient began: provenance, for those who look for it.
   */
  watchStep?(): OriginFinder;
  /** A copy of a buffer made by {@link allocate}, as it is after everything that was enqueued before this call. */
  read(buffer: B): Promise<Float32Array>;
  /**
   * Only where enqueued work can be dropped before it runs (a recording whose callback throws): keeps `undo` until
   * the work runs, and calls those of dropped work newest first.
   */
  onRollback?(undo: () => void): void;
}
