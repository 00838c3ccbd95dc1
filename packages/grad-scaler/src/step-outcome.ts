/** Whether an optimizer changed anything. */
export type StepStatus = "applied" | "skipped";

/** The first value of a step that was infinite or NaN. */
export interface OverflowOrigin {
  /** The op that made it. */
  readonly op: string;
  /** The tensor that holds it, and the path of the module that made that. */
  readonly tensor: string;
  readonly module?: string;
  /** Its index in the flat tensor. */
  readonly element: number;
  readonly kind: "infinity" | "nan";
}

/** The first result of an op in which rounding left nothing but zeros of numbers that were not 0. */
export interface UnderflowOrigin {
  /** The op that made it. */
  readonly op: string;
  /** The tensor that holds it, and the path of the module that made that. */
  readonly tensor: string;
  readonly module?: string;
  readonly kind: "underflow";
  /** Its elements: those that were not 0 and were rounded to it, and those that were 0 before. */
  readonly elements: number;
  readonly roundedToZero: number;
  readonly exactZeros: number;
}

/** What is known of a step whose gradients were all 0. */
export interface ZeroGradients {
  /** Where numbers were rounded to zero, if somebody looked and that is how it came. */
  readonly origin?: UnderflowOrigin;
}

/** Why a step met gradients that are infinite or NaN. */
export interface OverflowCause {
  /**
   * `"forward"` where a loss was infinite or NaN before it was scaled: no scale can cure that. `"backward"` where losses
   * were finite and only gradients were not: what a smaller scale is for.
   */
  readonly pass: "forward" | "backward";
  /** The optimizers that met such gradients, as indices of {@link StepOutcome.optimizers}; all with `skip: "global"`. */
  readonly optimizers: readonly number[];
  /** Where it began, if somebody looked. */
  readonly origin?: OverflowOrigin;
}

/** What became of the scale of one of several losses; see the option `losses`. */
export interface LossOutcome {
  readonly lossId: number;
  readonly foundInf: boolean;
  readonly scaleBefore: number;
  readonly scaleAfter: number;
}

/**
 * What became of one training step; the host learns it later, in order. Schedules, moving averages and logs count
 * `"applied"` steps: a skipped one changed nothing.
 */
export interface StepOutcome {
  /** Counts the calls of `update()`, from 1; goes on where a loaded state left off. */
  readonly step: number;
  /** `"skipped"` where any optimizer was. */
  readonly status: StepStatus;
  /** Each optimizer's, in the order in which they were first unscaled or stepped in this step. */
  readonly optimizers: readonly StepStatus[];
  /** Whether any gradient was infinite or NaN. A step can also be skipped because the loop unscaled and never stepped. */
  readonly foundInf: boolean;
  /** Present where `foundInf`. */
  readonly cause?: OverflowCause;
  /**
   * Present where every element of every gradient was 0: the step taught nothing, though it may count as applied. A larger
   * scale helps where they were rounded to zero. Absent too where the primitives do not tell.
   */
  readonly zeroGradients?: ZeroGradients;
  /** With several losses, the scale of the first that took part. */
  readonly scaleBefore: number;
  readonly scaleAfter: number;
  /** With several losses, each that took part. */
  readonly losses?: readonly LossOutcome[];
  /**
   * The 2-norm of all gradients of the step, unscaled and before clipping, to float32 accuracy. Absent after an overflow,
   * and where it was not asked for or the primitives find none.
   */
  readonly gradientNorm?: number;
  /** The share of non-zero gradients that underflow to zero at `scaleBefore`. Present in steps that counted exponents. */
  readonly underflow?: number;
  /** Outcomes directly before this one that nobody read in time and that are lost; 0 unless reading fell far behind. */
  readonly lostBefore: number;
}
