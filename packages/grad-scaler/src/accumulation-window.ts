import { ScalerStateError } from "./errors.js";
import type { Scaled } from "./scaled.js";

/** What makes a window full: so many micro-steps, or batches with so many samples or tokens in all. */
export type WindowSize =
  | { readonly microSteps: number }
  | { readonly samples: number }
  | { readonly tokens: number };

const units: readonly string[] = ["microSteps", "samples", "tokens"];

/** What a window may do with its scaler. */
export interface WindowAccess<L, O> {
  /** How much this window has seen. */
  seen(owner: object): number;
  /** Scales the losses of a micro-step, after which the window has seen so much. */
  scale(owner: object, losses: readonly L[], weight: number, seen: number): Scaled<L>[];
  step(clip: ((optimizer: O) => unknown) | undefined): void;
  /** Forgets the micro-steps of the open window. */
  reset(): void;
}

/**
 * Gradient accumulation without the mistakes: micro-steps are weighted and scaled alike, and unscaling, clipping, the step
 * and the update come once, in that order, when all of them were seen. Made by `scaler.window()`, and used again and again:
 * each `step()` leaves it empty.
 *
 * Losses are means over their micro-batch. They are weighted by its share of the window, so that the gradients are those of
 * the mean over the whole window: with `samples` or `tokens` of batches of any size, each of which counts as many.
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

  /** How many micro-steps, samples or tokens are missing. */
  get remaining(): number {
    return this.#size - this.#access.seen(this);
  }

  /** Whether `step()` is due. */
  get isFull(): boolean {
    return this.remaining === 0;
  }

  /**
   * The loss of one micro-step, or several losses of it, weighted and scaled. With a window of samples or tokens, `count`
   * says how many of them the micro-batch has.
   *
   * @throws ScalerStateError where they do not fit into the window, and while another window is open. RangeError for a
   * count that is not positive.
   */
  scale(loss: L, ...count: Count): Scaled<L>;
  scale(losses: readonly L[], ...count: Count): Scaled<L>[];
  scale(loss: L | readonly L[], ...[count = 1]: Count): Scaled<L> | Scaled<L>[] {
    if (!(count > 0 && Number.isFinite(count))) {
      throw new RangeError(`a micro-step has ${count} ${this.#unit}: give a positive number.`);
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

  /** Gives up the micro-steps seen so far: clears their gradients (where optimizers have `zeroGrad`) and starts anew. */
  reset(): void {
    if (this.#access.seen(this) === 0) return;
    this.#access.reset();
    for (const optimizer of this.#optimizers) optimizer.zeroGrad?.();
  }
}
