import type { CompileProgress } from "@halfstep/device";
import type { StepOutcome } from "@halfstep/grad-scaler";
import { evaluationMode, type Module } from "@halfstep/nn";
import type { Evaluation } from "./evaluate.js";
import { type Kinds, requireKinds, said } from "./option-kinds.js";
import { atOnce } from "./reports.js";
import { requireOptions } from "./required-options.js";
import type { Stateful } from "./stateful.js";
import type { EvaluationMetrics, StepMetrics } from "./summary.js";

/** An interval: every so many steps, or at the end of every so many epochs. */
export type Every = { readonly steps: number } | { readonly epochs: number };

/** The state of training between two steps, and the requests of a hook. */
export interface Training {
  /** Steps so far, skipped ones included. */
  readonly step: number;
  /** Epochs that are complete. */
  readonly epochs: number;
  /** Whether the last step was also the last of its epoch. */
  readonly isEpochEnd: boolean;
  /** Ends training here. */
  stop(): void;
  /**
   * Says that a signal has ended the work of this call, which the hook repeats when training goes on. Training ends with `isAborted` then,
   * also after its last step.
   */
  interrupted(): void;
  /** Resolves when the device has finished all steps so far, and they were reported. What follows does not count as time of steps. */
  settled(): Promise<void>;
  /** Requests a checkpoint of this step, if training saves any; it is saved after all hooks were called. */
  save(options?: { readonly best?: boolean }): void;
  /**
   * Reports the values of an evaluation, by name, to all listeners, after all steps so far were reported. Waits for the
   * device.
   */
  evaluated(
    values: Readonly<Record<string, number>>,
    options?: { readonly best?: boolean },
  ): Promise<void>;
}

/**
 * A hook of training: a plain object with the members that it needs. Hooks are called in their order. Checkpoints include
 * hooks with `stateDict` and `loadStateDict`.
 */
export interface TrainingHook extends Partial<Stateful> {
  /** Whether the ranks of a job have to take equally many steps: training refuses `onOverflow: "retry"` then. Default false. */
  readonly needsEqualSteps?: boolean;
  /** Called inside each recorded step, after the optimizer's step: `record: () => ema.update()`. A promise is refused with a TypeError. */
  readonly record?: () => void;
  /**
   * Called while a step waits for programs that it is the first to need: at the beginning and after each program. Promises count as
   * those of `onStep` do.
   */
  readonly onCompile?: (progress: CompileProgress) => void;
  /**
   * Called for every step, in order, up to `reportInterval` steps late. Training does not wait for a promise that it returns. A rejection of
   * it ends training as an error does; the end of training waits for all.
   */
  readonly onStep?: (metrics: StepMetrics, outcome: StepOutcome | undefined) => void;
  /** Called for every evaluation, in order with the steps. Promises count as those of `onStep` do. */
  readonly onEvaluation?: (metrics: EvaluationMetrics) => void;
  /**
   * Called before the states for a checkpoint are collected: gives this process what others have of them. All ranks of a job save at the
   * same steps then: give `train()` the signal of `jobExchange()`, which ends training on all of them after the same step.
   */
  readonly beforeSave?: () => Promise<void>;
  /** Called after a checkpoint was saved: the processes of a job wait until the one that saves for all has done so. */
  readonly afterSave?: () => Promise<void>;
  /**
   * Called once when training goes on from a checkpoint between two steps: all states are loaded, and no step was taken. A hook with this
   * function that had ended training decides anew: it calls `stop()` again, or training goes on.
   */
  readonly onResume?: (training: Training) => void | Promise<void>;
  /** Called once when training ends behind a step, but for an error, and before it is saved. */
  readonly onEnd?: () => void | Promise<void>;
  /**
   * Called after each submitted step. Training continues when it resolves. Where a signal comes while the batch after the last step is awaited,
   * it is unknown whether the epoch ends; hooks are called for that step when training goes on from its checkpoint.
   */
  readonly afterStep?: (training: Training) => void | Promise<void>;
}

/** Options of evaluations during training. */
export interface EvaluationOptions<E> {
  readonly every: Every;
  readonly evaluate: () => Promise<E>;
  /** The model to put into evaluation mode during evaluations. Each of its modules gets the mode back that it had. */
  readonly model?: Module;
  /** The score by which evaluations are compared, a number. Default: `loss`. */
  readonly score?: (evaluation: E) => number;
  /** Whether lower or higher scores are better. Default "min". */
  readonly mode?: "min" | "max";
  /** The least improvement that counts. Default 0. */
  readonly minDelta?: number;
  /** Early stopping: training ends after so many evaluations in a row without improvement. Default: never. */
  readonly patience?: number;
  /** Called with each result. A promise that it returns is awaited. */
  readonly onResult?: (evaluation: E, at: EvaluatedAt) => void;
  /** The values for the log. Default: the numeric members of an evaluation. */
  readonly values?: (evaluation: E) => Readonly<Record<string, number>>;
}

/** The circumstances of an evaluation. */
export interface EvaluatedAt {
  readonly step: number;
  readonly epochs: number;
  readonly score: number;
  /** Whether it is the best so far. */
  readonly isBest: boolean;
}

/** The state of an evaluating hook, also in checkpoints. */
export interface EvaluationState {
  /** Null before the first evaluation. */
  readonly best: number | null;
  /** The step of the best. */
  readonly bestStep: number;
  /** Evaluations since then. */
  readonly worse: number;
  /** In checkpoints: whether a signal has ended the evaluation of the last step. It is repeated when training goes on from there. */
  readonly isPending?: boolean;
}

/** A hook that evaluates, with its results. */
export interface EvaluationHook extends TrainingHook {
  readonly state: EvaluationState;
}

/**
 * A hook that evaluates at an interval, reports the results, saves the best checkpoint, and optionally stops early. A NaN
 * score is never better. An evaluation that a signal has ended early (`isAborted`) does not count, and is not reported: a run that goes on
 * from there repeats it. So does one that stopped early and is given more `patience`: it goes on.
 *
 * @example
 * hooks: {
 *   evaluation: evaluateEvery({ every: { epochs: 1 }, model, evaluate: () => evaluate({ … }), patience: 3 }),
 * }
 */
export function evaluateEvery<E extends Pick<Evaluation, "loss">>(
  options: EvaluationOptions<E>,
): EvaluationHook;
export function evaluateEvery<E>(
  options: EvaluationOptions<E> & Required<Pick<EvaluationOptions<E>, "score">>,
): EvaluationHook;
export function evaluateEvery<E>(options: EvaluationOptions<E>): EvaluationHook {
  requireOptions("evaluateEvery", options, {
    every: "{ steps } or { epochs }",
    evaluate: "a function that evaluates",
  });
  requireKinds("evaluateEvery()", options, kinds);
  const { every, mode = "min", minDelta = 0, patience = Number.POSITIVE_INFINITY } = options;
  const values = options.values ?? numbersOf;
  const score = options.score ?? ((evaluation: E) => (evaluation as Partial<Evaluation>)?.loss);
  requireEvery("every", every);
  if (mode !== "min" && mode !== "max")
    throw new RangeError(`mode is ${said(mode)}: it must be "min" or "max"`);
  if (!(patience >= 1))
    throw new RangeError(`patience is ${said(patience)}: it must be at least 1`);
  if (!(minDelta >= 0))
    throw new RangeError(`minDelta is ${said(minDelta)}: it must be at least 0`);
  let state: EvaluationState = { best: null, bestStep: 0, worse: 0 };
  let isPending = false;
  const isBetter = (value: number): boolean =>
    state.best === null
      ? !Number.isNaN(value)
      : mode === "min"
        ? value < state.best - minDelta
        : value > state.best + minDelta;
  const evaluated = async (): Promise<E> => {
    const goOn = options.model && evaluationMode(options.model);
    try {
      return await options.evaluate();
    } finally {
      goOn?.();
    }
  };
  const evaluateNow = async (training: Training): Promise<void> => {
    await training.settled();
    const evaluation = await evaluated();
    if ((evaluation as Partial<Evaluation> | undefined)?.isAborted) {
      isPending = true;
      training.interrupted();
      return;
    }
    isPending = false;
    const value = atOnce("score() of evaluateEvery()", score(evaluation));
    if (typeof value !== "number")
      throw new TypeError(
        options.score
          ? `score() of evaluateEvery() gave ${said(value)}: it must give a number`
          : "evaluate() of evaluateEvery() gave no loss, which is a number: give one, or the option score",
      );
    const isBest = isBetter(value);
    const { step, epochs } = training;
    state = isBest
      ? { best: value, bestStep: step, worse: 0 }
      : { ...state, worse: state.worse + 1 };
    await options.onResult?.(evaluation, { step, epochs, score: value, isBest });
    await training.evaluated(atOnce("values() of evaluateEvery()", values(evaluation)), {
      best: isBest,
    });
    if (isBest) training.save({ best: true });
    if (state.worse >= patience) training.stop();
  };
  return {
    get state() {
      return state;
    },
    afterStep(training) {
      if (isDue(every, training)) return evaluateNow(training);
      isPending = false;
    },
    onResume(training) {
      if (isPending) return evaluateNow(training);
      if (state.worse >= patience) training.stop();
    },
    stateDict: () => (isPending ? { ...state, isPending } : state),
    loadStateDict({ best, bestStep, worse, ...saved }: EvaluationState) {
      if (!(best === null || typeof best === "number") || !isCount(bestStep) || !isCount(worse))
        throw new TypeError("the state of an evaluation needs best, bestStep and worse");
      state = { best, bestStep, worse };
      isPending = saved.isPending === true;
    },
  };
}

const kinds: Kinds<EvaluationOptions<never>> = {
  ...{ every: "any", evaluate: "function", model: "any", score: "function", mode: "any" },
  ...{ minDelta: "any", patience: "any", onResult: "function", values: "function" },
};

const numbersOf = (evaluation: unknown): Readonly<Record<string, number>> =>
  Object.fromEntries(
    Object.entries(evaluation ?? {}).filter(
      (entry): entry is [string, number] => typeof entry[1] === "number",
    ),
  );

export const isDue = (
  every: Every,
  { step, epochs, isEpochEnd }: Pick<Training, "step" | "epochs" | "isEpochEnd">,
): boolean =>
  "steps" in every ? step % every.steps === 0 : isEpochEnd && epochs % every.epochs === 0;

export function requireEvery(name: string, every: Every): void {
  const [unit, count] = Object.entries(every)[0] ?? [];
  if ((unit !== "steps" && unit !== "epochs") || !isCount(count) || count === 0)
    throw new RangeError(
      `${name} is ${JSON.stringify(every)}: give { steps } or { epochs }, a whole number from 1 on`,
    );
}

/** What training calls of a hook. */
const members: Readonly<Record<Exclude<keyof TrainingHook, "needsEqualSteps">, true>> = {
  ...{ record: true, onCompile: true, onStep: true, onEvaluation: true, beforeSave: true },
  ...{
    afterSave: true,
    onResume: true,
    onEnd: true,
    afterStep: true,
    stateDict: true,
    loadStateDict: true,
  },
};

/** Throws for a hook with nothing that training calls, and for members that it calls and that are no functions. */
export function requireHooks(hooks: Readonly<Record<string, TrainingHook>>): void {
  for (const [name, hook] of Object.entries(hooks)) {
    const known = Object.keys(members) as (keyof typeof members)[];
    const given = known.filter((member) => hook?.[member] !== undefined);
    if (given.length === 0)
      throw new TypeError(`the hook ${name} has none of ${known.join(", ")}: it would do nothing`);
    for (const member of given)
      if (typeof hook[member] !== "function")
        throw new TypeError(
          `${member} of the hook ${name} is ${said(hook[member])}: it must be a function`,
        );
  }
}

const isCount = (value: unknown): boolean => Number.isSafeInteger(value) && (value as number) >= 0;
