/** Whether an optimizer changed anything. */
export type StepStatus = "applied" | "skipped";

/** The first value of a step that was infinite or NaN. */
export interface OverflowOrigin {
  /** The op that computed it. */
  readonly op: string;
  /** The tensor that holds it, and the path of the module that made that. */
  readonly tensor: string;
  readonly module?: string;
  /** Its index in the flat tensor. */
  readonly element: number;
  readonly kind: "infinity" | "nan";
}

/** The first result of an op in which rounding turned all nonzero numbers into zeros. */
export interface UnderflowOrigin {
  /** The op that computed it. */
  readonly op: string;
  /** The tensor that holds it, and the path of the module that made that. */
  readonly tensor: string;
  readonly module?: string;
  readonly kind: "underflow";
  /** Number of its elements; below, those that were rounded from nonzero to 0, and those that were 0 before. */
  readonly elements: number;
  readonly roundedToZero: number;
  readonly exactZeros: number;
}

/** Details of a step whose gradients were all 0. */
export interface ZeroGradients {
  /** The place where numbers were rounded to zero, if it was searched and found. */
  readonly origin?: UnderflowOrigin;
}

/** The cause of gradients that are infinite or NaN. */
export interface OverflowCause {
  /**
   * `"forward"` where a loss was infinite or NaN before it was scaled: no scale prevents that. `"backward"` where losses
   * were finite and only gradients were not: a smaller scale helps.
   */
  readonly pass: "forward" | "backward";
  /** The optimizers with such gradients, as indices of {@link StepOutcome.optimizers}; all with `skip: "global"`. */
  readonly optimizers: readonly number[];
  /** The origin, if it was searched. */
  readonly origin?: OverflowOrigin;
}

/** The change of the scale of one of several losses; see the option `losses`. */
export interface LossOutcome {
  readonly lossId: number;
  readonly foundInf: boolean;
  readonly scaleBefore: number;
  readonly scaleAfter: number;
}

/**
 * The outcome of one training step, which the host reads later, in order. Schedules, moving averages and logs count
 * `"applied"` steps: a skipped one changed nothing.
 */
export interface StepOutcome {
  /** Counts the calls of `update()`, from 1; continues from a loaded state. */
  readonly step: number;
  /** `"skipped"` where any optimizer was. */
  readonly status: StepStatus;
  /** The status of each optimizer, in the order in which they were first unscaled or stepped in this step. */
  readonly optimizers: readonly StepStatus[];
  /** Whether any gradient was infinite or NaN. A step can also be skipped because the loop unscaled and never stepped. */
  readonly foundInf: boolean;
  /** Present where `foundInf`. */
  readonly cause?: OverflowCause;
  /**
   * Present where every element of every gradient was 0: the step learned nothing, although it may count as applied. A
   * larger scale helps where the gradients were rounded to zero. Also absent where the primitives do not detect it.
   */
  readonly zeroGradients?: ZeroGradients;
  /** With several losses, the scale of the first that took part. */
  readonly scaleBefore: number;
  readonly scaleAfter: number;
  /** With several losses, each that took part. */
  readonly losses?: readonly LossOutcome[];
  /**
   * The 2-norm of all gradients of the step, unscaled and before clipping, to float32 accuracy. Absent after an overflow,
   * and where it was not requested or the primitives do not compute it.
   */
  readonly gradientNorm?: number;
  /** The share of non-zero gradients that underflow to zero at `scaleBefore`. Present in steps that counted exponents. */
  readonly underflow?: number;
  /** Number of outcomes directly before this one that were overwritten before they were read; normally 0. */
  readonly lostBefore: number;
}
