import { ScalerStateError } from "./errors.js";
import type { Scaled } from "./scaled.js";

/** The size of a window: micro-steps, or the total number of samples or tokens of its batches. */
export type WindowSize =
  | { readonly microSteps: number }
  | { readonly samples: number }
  | { readonly tokens: number };

const units: readonly string[] = ["microSteps", "samples", "tokens"];

/** The access of a window to its scaler. */
export interface WindowAccess<L, O> {
  /** The part of this window that was scaled so far. */
  seen(owner: object): number;
  /** Scales the losses of a micro-step; `seen` is the part of the window including it. */
  scale(owner: object, losses: readonly L[], weight: number, seen: number): Scaled<L>[];
  step(clip: ((optimizer: O) => unknown) | undefined): void;
  /** Forgets the micro-steps of the open window. */
  reset(): void;
}

/**
 * Gradient accumulation: weights and scales all micro-steps alike, and unscales, clips, steps and updates once, in that
 * order, after the last micro-step. Made by `scaler.window()`; each `step()` empties the window for the next use.
 *
 * Losses are means over their micro-batch. They are weighted by its share of the window, so that the gradients are those of
 * the mean over the whole window: with `samples` or `tokens`, batches may have any size and count accordingly.
 */
export class AccumulationWindow<
  L,
  O extends { zeroGrad?(): void },
  Count extends readonly [count?: number] = [],
> {
  readonly #optimizers: readonly O[];
  readonly #access: WindowAccess<L, O>;
  readonly #unit: string;
  readonly #size: number;

  /** @internal Use `scaler.window()`. */
  constructor(optimizers: readonly O[], size: WindowSize, access: WindowAccess<L, O>) {
    const given = Object.entries(size) as [string, number][];
    const [first] = given;
    if (first === undefined || given.length > 1 || !units.includes(first[0])) {
      throw new RangeError(
        `a window is sized by ${Object.keys(size).join(" and ") || "nothing"}: it must be one of ${units.join(", ")}.`,
      );
    }
    const [unit, count] = first;
    const isWhole = unit !== "microSteps" || Number.isInteger(count);
    if (!(isWhole && count > 0 && Number.isFinite(count))) {
      throw new RangeError(
        `${unit} is ${count}: it must be ${isWhole ? "positive" : "an integer"}.`,
      );
    }
    this.#optimizers = optimizers;
    this.#access = access;
    this.#unit = unit === "microSteps" ? "micro-steps" : unit;
    this.#size = count;
  }

  /** The number of missing micro-steps, samples or tokens. */
  get remaining(): number {
    return this.#size - this.#access.seen(this);
  }

  /** Whether `step()` is due. */
  get isFull(): boolean {
    return this.remaining === 0;
  }

  /**
   * Weights and scales the loss (or losses) of one micro-step. For a window of samples or tokens, `count` is their number
   * in the micro-batch: 0 where it adds nothing, because it only repeats samples of another process; its loss must be
   * finite all the same.
   *
   * @throws ScalerStateError where they exceed the window, and while another window is open. RangeError for a count below 0.
   */
  scale(loss: L, ...count: Count): Scaled<L>;
  scale(losses: readonly L[], ...count: Count): Scaled<L>[];
  scale(loss: L | readonly L[], ...[count = 1]: Count): Scaled<L> | Scaled<L>[] {
    if (!(count >= 0 && Number.isFinite(count))) {
      throw new RangeError(`a micro-step has ${count} ${this.#unit}: give their number.`);
    }
    const seen = this.#access.seen(this);
    if (seen + count > this.#size) {
      throw new ScalerStateError(
        "window-overfull",
        `${count} ${this.#unit} do not fit: the window is for ${this.#size} and has seen ${seen}; call window.step() when it ` +
          "is full, and make a window for each size.",
      );
    }
    const weight = Math.fround(count / this.#size);
    const several = Array.isArray(loss);
    const losses = (several ? loss : [loss]) as readonly L[];
    const scaled = this.#access.scale(this, losses, weight, seen + count);
    return several ? scaled : (scaled[0] as Scaled<L>);
  }

  /**
   * The step of the whole window: unscales, calls `clip` for each optimizer, steps where the gradients are finite, updates
   * the scale and clears the gradients (where optimizers have `zeroGrad`).
   *
   * @throws ScalerStateError where micro-steps are missing.
   */
  step(options: { readonly clip?: (optimizer: O) => unknown } = {}): void {
    if (!this.isFull) {
      throw new ScalerStateError(
        "window-not-full",
        `the window has seen ${this.#access.seen(this)} of ${this.#size} ${this.#unit}: its gradients are not yet the mean ` +
          "that they are weighted for. For a shorter last window of an epoch make one of that size.",
      );
    }
    this.#access.step(options.clip);
    for (const optimizer of this.#optimizers) optimizer.zeroGrad?.();
  }

  /** Abandons the micro-steps so far: clears their gradients (where optimizers have `zeroGrad`) and empties the window. */
  reset(): void {
    if (this.#access.seen(this) === 0) return;
    this.#access.reset();
    for (const optimizer of this.#optimizers) optimizer.zeroGrad?.();
  }
}
