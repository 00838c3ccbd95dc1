import { ScalerStateError } from "./errors.js";
import type { GradScaler } from "./grad-scaler.js";
import { insideOf } from "./inside.js";
import { FLAG_WORDS, type ScaledOptimizer, STATE_WORDS } from "./primitives.js";
import { demand, demandDone, demandInteger, demandKnown } from "./refusal.js";
import { asScaled, type Scaled } from "./scaled.js";
import { betweenSteps, listOf, refuseLoss, refuseWindow } from "./stages.js";
import type { Stepper } from "./stepper.js";

/** The size of a window: micro-steps, or the total number of samples or tokens of its batches. */
export type WindowSize =
  | { readonly microSteps: number }
  | { readonly samples: number }
  | { readonly tokens: number };

const units: readonly string[] = ["microSteps", "samples", "tokens"];

/**
 * Gradient accumulation: weights and scales all micro-steps alike, and unscales, clips, steps and updates once, in that
 * order, after the last micro-step. Made by {@link accumulationWindow}; each `step()` empties the window for the next use.
 *
 * Losses are means over their micro-batch. They are weighted by its share of the window, so that the gradients are those of
 * the mean over the whole window: with `samples` or `tokens`, batches may have any size and count accordingly.
 */
export class AccumulationWindow<
  B,
  L,
  O extends ScaledOptimizer<B>,
  Count extends readonly [count?: number] = [],
> {
  readonly #optimizers: readonly O[];
  readonly #stepper: Stepper<B, L>;
  readonly #unit: string;
  readonly #size: number;

  /** @internal Use {@link accumulationWindow}. */
  constructor(scaler: GradScaler<B, L>, optimizers: readonly O[], size: WindowSize) {
    const given = Object.entries(size) as [string, number][];
    const [unit, count] = given[0] ?? ["", 0];
    demandKnown("size of a window", given.map(([unit]) => unit).join(" and "), units);
    if (unit === "microSteps") demandInteger(unit, count, 1);
    demand(unit, count, count > 0 && Number.isFinite(count), "positive");
    this.#optimizers = optimizers;
    this.#stepper = insideOf(scaler, "accumulationWindow");
    this.#unit = unit === "microSteps" ? "micro-steps" : unit;
    this.#size = count;
  }

  /** The number of missing micro-steps, samples or tokens. */
  get remaining(): number {
    return this.#size - this.#seen;
  }

  /** Whether `step()` is due. */
  get isFull(): boolean {
    return this.remaining === 0;
  }

  /** The part of this window that was scaled so far. */
  get #seen(): number {
    const { window } = this.#stepper.host;
    return window?.owner === this ? window.seen : 0;
  }

  /**
   * Weights and scales the loss (or losses) of one micro-step. For a window of samples or tokens, `count` is their number
   * in the micro-batch: 0 where it adds nothing, because it only repeats samples of another process; its loss must be
   * finite all the same.
   *
   * @throws ScalerStateError where they exceed the window, and while another window is open. RangeError for a count that is missing or
   * below 0.
   */
  scale(loss: L, ...count: Count): Scaled<L>;
  scale(losses: readonly L[], ...count: Count): Scaled<L>[];
  scale(loss: L | readonly L[], ...[given]: Count): Scaled<L> | Scaled<L>[] {
    const count = given ?? (this.#unit === "micro-steps" ? 1 : Number.NaN);
    if (!(count >= 0 && Number.isFinite(count))) {
      throw new RangeError(
        `a micro-step has ${given ?? "no number of"} ${this.#unit}: give their number.`,
      );
    }
    const seen = this.#seen + count;
    if (seen > this.#size) {
      throw new ScalerStateError(
        "window-overfull",
        `${count} ${this.#unit} do not fit: the window is for ${this.#size} and has seen ${this.#seen}; call window.step() ` +
          "when it is full, and make a window for each size.",
      );
    }
    const stepper = this.#stepper;
    if (stepper.host.window?.owner !== this) refuseWindow(stepper.host);
    const optimizers = this.#optimizers;
    if (stepper.resident) refuseLoss(stepper.host, 0, optimizers);
    stepper.change({ window: { owner: this, seen } });
    const weight = Math.fround(count / this.#size);
    const scaled = (each: L): Scaled<L> =>
      asScaled(
        stepper.resident
          ? stepper.scale(each, { optimizers }, weight)
          : weighted(stepper, each, weight),
      );
    return Array.isArray(loss) ? loss.map(scaled) : scaled(loss as L);
  }

  /**
   * The step of the whole window: unscales, calls `clip` for each optimizer, steps where the gradients are finite, updates
   * the scale and clears the gradients (where optimizers have `zeroGrad`).
   *
   * @throws ScalerStateError where micro-steps are missing. TypeError for other options, such as the function itself, and where `clip`
   * returns a promise or a generator: gradients would silently remain unclipped.
   */
  step(options: { readonly clip?: (optimizer: O) => unknown } = {}): void {
    const { clip } = clipOption(options);
    if (!this.isFull) {
      throw new ScalerStateError(
        "window-not-full",
        `the window has seen ${this.#seen} of ${this.#size} ${this.#unit}: its gradients are not yet the mean ` +
          "that they are weighted for. For a shorter last window of an epoch make one of that size.",
      );
    }
    const stepper = this.#stepper;
    if (clip)
      for (const optimizer of this.#optimizers) {
        stepper.unscale(optimizer);
        demandDone("clip of window.step()", clip(optimizer));
      }
    stepper.step(this.#optimizers);
    stepper.update();
    // A disabled scaler has no update that would close it.
    if (!stepper.resident) stepper.change({ window: undefined });
    this.#zeroGrad();
  }

  /** Abandons the micro-steps so far: clears their gradients (where optimizers have `zeroGrad`) and empties the window. */
  reset(): void {
    if (this.#stepper.host.window?.owner !== this) return;
    abandonStep(this.#stepper);
    this.#zeroGrad();
  }

  #zeroGrad(): void {
    for (const optimizer of this.#optimizers) optimizer.zeroGrad?.();
  }
}

/**
 * Makes a window of micro-steps whose gradients form one step. It weights and scales losses, and unscales, clips, steps and
 * updates after the last micro-step. While it is open, the scaler's own methods throw.
 *
 * @example
 * const window = accumulationWindow(scaler, optimizer, { microSteps: 4 });
 * for (const batch of batches) {
 *   window.scale(lossOf(batch)).backward();
 *   if (window.isFull) window.step({ clip: (optimizer) => clipGradNorm(optimizer, 1) });
 * }
 *
 * @throws RangeError for a size that is not positive, or in none of the three units. TypeError where `scaler` is not of this copy of
 * the package.
 */
export function accumulationWindow<B, L, O extends ScaledOptimizer<B>>(
  scaler: GradScaler<B, L>,
  optimizers: O | readonly O[],
  size: { readonly microSteps: number },
): AccumulationWindow<B, L, O, []>;
export function accumulationWindow<B, L, O extends ScaledOptimizer<B>>(
  scaler: GradScaler<B, L>,
  optimizers: O | readonly O[],
  size: { readonly samples: number } | { readonly tokens: number },
): AccumulationWindow<B, L, O, [count: number]>;
export function accumulationWindow<B, L, O extends ScaledOptimizer<B>>(
  scaler: GradScaler<B, L>,
  optimizers: O | readonly O[],
  size: WindowSize,
): AccumulationWindow<B, L, O, [count?: number]> {
  return new AccumulationWindow(scaler, listOf<B, O>(optimizers), size);
}

/** @throws TypeError for what is no `{ clip }` */
function clipOption<C>(options: { readonly clip?: C }): { readonly clip?: C } {
  const { clip } = options;
  const isKnown =
    typeof options === "object" && Object.keys(options).every((name) => name === "clip");
  if (isKnown && (clip === undefined || typeof clip === "function")) return options;
  throw new TypeError(
    "window.step() takes { clip: (optimizer) => … } or nothing: its function clips the gradients of an optimizer.",
  );
}

/** Abandons a begun step, on the host and on the device. */
function abandonStep<B, L>(stepper: Stepper<B, L>): void {
  const { host, resident } = stepper;
  const records = resident ? stepper.records(resident, true) : [];
  stepper.change(betweenSteps(host));
  for (const { rule, lossId, foundInfs } of records) {
    const use = { counted: host.counted.has(lossId), isLast: true };
    const kept = { ...rule, dynamic: false };
    resident?.update(lossId, use, { foundInfs, rule: kept, tag: 0 });
  }
}

/** `loss × weight`, where scaling is disabled. */
function weighted<B, L>(stepper: Stepper<B, L>, loss: L, weight: number): L {
  if (weight === 1) return loss;
  const { primitives } = stepper;
  if (stepper.unit === undefined) {
    const [state, lossFlag] = [primitives.allocate(STATE_WORDS), primitives.allocate(FLAG_WORDS)];
    primitives.writeState(state, [1, 1, 0, 0, 0, 0, 0, 0]);
    stepper.unit = { state, lossFlag };
    primitives.onRollback?.(() => {
      stepper.unit = undefined;
    });
  }
  const { state, lossFlag } = stepper.unit;
  return primitives.scaleLoss(loss, state, { weight, lossFlag });
}
