import { OutcomeReader, type OutcomeSchedule } from "./outcome-reader.js";
import type { OutcomeLog } from "./outcomes.js";
import {
  type AmpPrimitives,
  FLAG_WORDS,
  OUTCOME_RING,
  OUTCOME_WORDS,
  type ScaleUpdate,
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
  readonly #flags: WeakMap<object, B[]> = new WeakMap();

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
    const flags = this.#flags.get(owner) ?? [];
    this.#flags.set(owner, flags);
    flags[lossId] ??= this.primitives.allocate(FLAG_WORDS);
    return flags[lossId];
  }

  /** The flag that guards steps of `owner`, whose gradients were checked with the flags of these losses. */
  guard(owner: object, lossIds: readonly number[]): B {
    const [only = 0, another] = lossIds;
    return this.flag(owner, another === undefined ? only : this.losses.length);
  }

  /** An update of the scale of a loss. All losses share the sums of squares, which the last update reads. */
  update(
    lossId: number,
    { counted, isLast }: { readonly counted: boolean; readonly isLast: boolean },
    changes: Pick<ScaleUpdate<B>, "foundInfs" | "rule" | "tag" | "newScale">,
  ): void {
    const { state, lossFlag, exponents } = this.loss(lossId);
    this.primitives.updateScale({
      ...changes,
      state,
      lossFlag,
      outcomes: this.outcomes,
      squares: isLast ? this.squares : undefined,
      exponents: counted ? exponents : undefined,
    });
  }

  async readState(lossId: number, rule: ScaleRule): Promise<ScaleState> {
    const words = await this.primitives.read(this.loss(lossId).state);
    return stateOfWords([...words] as unknown as StateWords, rule);
  }

  writeState(lossId: number, state: ScaleState, rule: ScaleRule): void {
    this.primitives.writeState(this.loss(lossId).state, wordsOfState(state, rule));
  }
}
