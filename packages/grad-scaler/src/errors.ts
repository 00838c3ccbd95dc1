import type { StepOutcome } from "./step-outcome.js";

/** Marks an error so that `instanceof` recognises it even when a program holds two copies of this package. */
function brand(error: Error, name: string): void {
  error.name = name;
  Object.defineProperty(error, Symbol.for(`@halfstep/${name}`), { value: true });
}

const hasBrand = (value: unknown, name: string): boolean =>
  typeof value === "object" && value !== null && Symbol.for(`@halfstep/${name}`) in value;

/** The mistake, for programs; the message describes it for people. */
export type ScalerMistake =
  | "double-unscale"
  | "unscale-after-step"
  | "double-step"
  | "no-checks"
  | "no-gradients"
  | "float16-gradients"
  | "scale-changed"
  | "not-scaled"
  | "other-scaler"
  | "stale-gradients"
  | "wrong-loss"
  | "step-without-scaler"
  | "late-check"
  | "too-many-optimizers"
  | "clip-before-unscale"
  | "clip-after-step"
  | "mid-step"
  | "unknown-loss"
  | "loss-after-unscale"
  | "open-window"
  | "window-not-full"
  | "window-overfull";

/** The calls of a training loop have an order that would train on wrong gradients. Thrown at the call. */
export class ScalerStateError extends Error {
  readonly mistake: ScalerMistake;

  constructor(mistake: ScalerMistake, message: string) {
    super(message);
    this.mistake = mistake;
    brand(this, "ScalerStateError");
  }
  static override [Symbol.hasInstance](value: unknown): boolean {
    return hasBrand(value, "ScalerStateError");
  }
}

/**
 * A step was skipped although the scale had already fallen to the floor: smaller scales will not prevent these
 * overflows. Rejects `drain()` and ends `outcomes()`, once until a step without overflow.
 */
export class ScaleCollapseError extends Error {
  /** The step that was skipped at the floor. */
  readonly step: number;
  /** The floor. */
  readonly scale: number;
  /** Consecutive steps with overflow up to this one, as far as their outcomes were read. */
  readonly skips: number;
  /**
   * The pass in which the first of those steps became infinite or NaN: "forward" for a loss, "backward" for gradients
   * only.
   */
  readonly pass: "forward" | "backward";
  /**
   * The outcomes that the rejected `drain()` would have returned, the collapse last; from `outcomes()` only the
   * collapse.
   */
  readonly outcomes: readonly StepOutcome[];

  constructor(
    collapse: StepOutcome,
    { skips, pass }: { readonly skips: number; readonly pass: "forward" | "backward" },
    outcomes: readonly StepOutcome[] = [collapse],
  ) {
    super(
      `step ${collapse.step} was skipped at the smallest loss scale allowed (${collapse.scaleBefore}; overflows in a row: ` +
        `${skips}): a smaller scale will not help. The ${pass} pass overflowed first: ${advice[pass]}, and ops that need float32.`,
    );
    this.step = collapse.step;
    this.scale = collapse.scaleBefore;
    this.skips = skips;
    this.pass = pass;
    this.outcomes = outcomes;
    brand(this, "ScaleCollapseError");
  }
  static override [Symbol.hasInstance](value: unknown): boolean {
    return hasBrand(value, "ScaleCollapseError");
  }
}

const advice = {
  forward: "the loss was infinite or NaN. Look at the data, the learning rate",
  backward:
    "the loss was finite. Look for infinite derivatives (a square root or logarithm at 0, a division by a small number)",
} as const;
