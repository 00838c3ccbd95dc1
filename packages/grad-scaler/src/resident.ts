import { OutcomeReader, type OutcomeSchedule } from "./outcome-reader.js";
import type { OutcomeLog } from "./outcomes.js";
import {
  type AmpPrimitives,
  FLAG_WORDS,
  type Gradient,
  OUTCOME_RING,
  OUTCOME_WORDS,
  type ScaleUpdate,
  type SquareSum,
  STATE_WORDS,
  type StateWords,
} from "./primitives.js";
import { initialScaleState, type ScaleRule, type ScaleState } from "./rule.js";
import { stateOfWords, wordsOfState } from "./state-dict.js";
import { EXPONENT_WORDS } from "./underflow.js";

/** The device buffers of a scaler for one loss. */
export interface ResidentLoss<B> {
  readonly state: B;
  readonly lossFlag: B;
  /** Absent where the rule does not use exponents. */
  readonly exponents: B | undefined;
}

/** The device buffers of a scaler, and the operations on them. */
export class Resident<B, L> {
  readonly primitives: AmpPrimitives<B, L>;
  readonly losses: readonly ResidentLoss<B>[];
  readonly outcomes: B;
  readonly reader: OutcomeReader;
  readonly squares: B | undefined;
  /** The flags of optimizers that skip together: one for each loss, and one that guards the step. */
  readonly #flags: WeakMap<object, { readonly own: (B | undefined)[]; guard: B | undefined }> =
    new WeakMap();

  /** @throws TypeError where an option needs an optional primitive that is missing. */
  constructor(
    primitives: AmpPrimitives<B, L>,
    rules: readonly ScaleRule[],
    options: {
      readonly log: OutcomeLog;
      readonly schedule: OutcomeSchedule | false;
      readonly gradientNorm: boolean;
    },
  ) {
    if (rules.length > 1 && !(primitives.rescale && primitives.combine)) {
      throw new TypeError(
        "several losses need the primitives rescale and combine: implement them, or make a scaler for each loss.",
      );
    }
    this.primitives = primitives;
    this.losses = rules.map((rule) => {
      const needsExponents = rule.targetUnderflow > 0;
      if (needsExponents && !primitives.countExponents) {
        throw new TypeError(
          'targetUnderflow needs the primitive countExponents: implement it, or import "@halfstep/tensor" besides "@halfstep/tensor/functional".',
        );
      }
      const loss = {
        state: primitives.allocate(STATE_WORDS),
        lossFlag: primitives.allocate(FLAG_WORDS),
        exponents: needsExponents ? primitives.allocate(EXPONENT_WORDS) : undefined,
      };
      primitives.writeState(loss.state, wordsOfState(initialScaleState(rule), rule));
      return loss;
    });
    this.outcomes = primitives.allocate(OUTCOME_RING * OUTCOME_WORDS);
    const { normPartials = 0 } = primitives;
    this.squares =
      options.gradientNorm && normPartials > 0 ? primitives.allocate(normPartials) : undefined;
    const read = (): Promise<Float32Array> => primitives.read(this.outcomes);
    this.reader = new OutcomeReader(read, options.log, options.schedule);
  }

  loss(lossId: number): ResidentLoss<B> {
    return this.losses[lossId] as ResidentLoss<B>;
  }

  /** The flag for gradients of `owner` that carry the scale of a loss. */
  flag(owner: object, lossId: number): B {
    const { own } = this.#flagsOf(owner);
    own[lossId] ??= this.primitives.allocate(FLAG_WORDS);
    return own[lossId];
  }

  /** The flag that guards steps of `owner`, whose gradients were checked with the flags of these losses. */
  guard(owner: object, lossIds: readonly number[]): B {
    if (lossIds.length < 2) return this.flag(owner, lossIds[0] ?? 0);
    const flags = this.#flagsOf(owner);
    flags.guard ??= this.primitives.allocate(FLAG_WORDS);
    return flags.guard;
  }

  /** Checks gradients, and unscales them in place unless the optimizer will. */
  check(
    gradients: readonly Gradient<B>[],
    { state }: ResidentLoss<B>,
    foundInf: B,
    inPlace: boolean,
  ): void {
    const { primitives, squares } = this;
    const sum: SquareSum<B> | undefined = squares && { squares, state };
    if (inPlace) primitives.unscale(gradients, state, foundInf, squares);
    else primitives.check(gradients, foundInf, sum);
  }

  /** An update of the scale of a loss. All losses share the sums of squares, which the last update reads. */
  update(
    lossId: number,
    { counted, isLast }: { readonly counted: boolean; readonly isLast: boolean },
    { foundInfs, rule, tag }: Pick<ScaleUpdate<B>, "foundInfs" | "rule" | "tag">,
  ): ScaleUpdate<B> {
    const { state, lossFlag, exponents } = this.loss(lossId);
    const { outcomes, squares } = this;
    const update = { state, lossFlag, outcomes, foundInfs, rule, tag };
    const readsSquares = squares !== undefined && isLast;
    const readsExponents = exponents !== undefined && counted;
    if (!readsSquares && !readsExponents) return update;
    return { ...update, ...(readsSquares && { squares }), ...(readsExponents && { exponents }) };
  }

  async readState(lossId: number, rule: ScaleRule): Promise<ScaleState> {
    const words = await this.primitives.read(this.loss(lossId).state);
    return stateOfWords([...words] as unknown as StateWords, rule);
  }

  writeState(lossId: number, state: ScaleState, rule: ScaleRule): void {
    this.primitives.writeState(this.loss(lossId).state, wordsOfState(state, rule));
  }

  #flagsOf(owner: object): { readonly own: (B | undefined)[]; guard: B | undefined } {
    let flags = this.#flags.get(owner);
    if (flags === undefined) {
      flags = { own: [], guard: undefined };
      this.#flags.set(owner, flags);
    }
    return flags;
  }
}
