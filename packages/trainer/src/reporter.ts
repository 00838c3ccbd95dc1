import { type GradScaler, ScaleCollapseError, type StepOutcome } from "@halfstep/grad-scaler";
import type { Storage, Tensor } from "@halfstep/tensor";
import { DivergenceError } from "./errors.js";
import type { ReportedRate } from "./reported-rate.js";
import type { StepMetrics } from "./summary.js";

/** Steps between two reads of losses and outcomes. */
export const reportInterval = 16;

/** The loss of a micro-step, as a tensor or a number, and its share of the step. */
export interface MicroLoss {
  readonly loss: Tensor | number;
  readonly weight: number;
}

interface PendingStep {
  readonly step: number;
  /** Counts from 1. */
  readonly epoch: number;
  readonly lr: ReturnType<ReportedRate>;
  readonly losses: readonly MicroLoss[];
  /** The outcome, if it was already read. */
  readonly outcome?: StepOutcome | undefined;
}

export interface ReporterOptions {
  readonly scaler: GradScaler<Storage, Tensor>;
  readonly precision: string;
  readonly lr: ReportedRate;
  readonly allowNonFiniteLoss: boolean;
  readonly tell: (metrics: StepMetrics, outcome: StepOutcome | undefined) => void;
}

/** The state of the reporter, a part of checkpoints. */
export interface ReporterState {
  readonly applied: number;
  readonly scale: number;
}

/**
 * Reports steps in order. Each report awaits the reads that the previous one began, so that the device is never idle.
 */
export class Reporter {
  applied: number;
  scale: number;
  readonly #options: ReporterOptions;
  /** Steps that the scaler counted in an earlier use, before training. */
  readonly #stepsBefore: number;
  #waiting: PendingStep[] = [];
  /** Steps that were added and not reported yet. */
  #unreported = 0;
  #underWay: Promise<void> = Promise.resolve();
  #isLastApplied = true;
  #isGivenUp = false;

  constructor(options: ReporterOptions, state: ReporterState, stepsBefore: number) {
    this.#options = options;
    this.#stepsBefore = stepsBefore;
    this.applied = state.applied;
    this.scale = state.scale;
  }

  add(pending: Omit<PendingStep, "lr">): void {
    const before = this.applied + this.#unreported++;
    this.#waiting.push({ ...pending, lr: this.#options.lr(before) });
  }

  async report(): Promise<void> {
    await this.#underWay;
    this.#begin();
  }

  /** Reports all steps so far. Waits for the device. */
  async flush(): Promise<void> {
    await this.report();
    await this.#underWay;
  }

  /** Flushes, and returns whether the last step changed the parameters. */
  async isLastApplied(): Promise<boolean> {
    await this.flush();
    return this.#isLastApplied;
  }

  /** After a failure: reports the steps that can still be read. */
  async flushRest(): Promise<void> {
    await this.#underWay.catch(() => {});
    while (this.#waiting.length > 0 && !this.#isGivenUp) {
      this.#begin();
      await this.#underWay.catch(() => {});
    }
  }

  #begin(): void {
    const steps = this.#waiting;
    this.#waiting = [];
    this.#underWay = this.#tellAll(steps);
    // The next report throws a failure; until then it must not count as unhandled.
    this.#underWay.catch(() => {});
  }

  async #tellAll(steps: readonly PendingStep[]): Promise<void> {
    const [losses, drained] = await Promise.all([
      Promise.allSettled(steps.map(({ losses }) => meanLoss(losses))),
      this.#drain(),
    ]);
    for (const step of steps) for (const { loss } of step.losses) disposeOf(loss);
    const byStep = new Map(drained.outcomes.map((outcome) => [outcome.step, outcome]));
    const outcomeOf = ({ outcome, step }: PendingStep): StepOutcome | undefined =>
      outcome ?? byStep.get(this.#stepsBefore + step);
    // After a failure, keeps the unreported steps for a later call.
    const keepFrom = (first: number): void => {
      const rest = steps
        .slice(first)
        .map((each, i) => known(each, losses[first + i], outcomeOf(each)));
      this.#waiting = [...rest, ...this.#waiting];
    };
    for (const [i, pending] of steps.entries()) {
      const loss = losses[i] as PromiseSettledResult<number>;
      const outcome = outcomeOf(pending);
      if (drained.failure && !outcome) {
        this.#isGivenUp ||= !(drained.failure instanceof ScaleCollapseError);
        keepFrom(i);
        throw drained.failure;
      }
      if (loss.status === "rejected") {
        this.#isGivenUp = true;
        throw loss.reason;
      }
      try {
        this.#tell(pending, loss.value, outcome);
      } catch (error) {
        keepFrom(i + 1);
        throw error;
      }
    }
    if (drained.failure) throw drained.failure;
  }

  #tell(pending: PendingStep, loss: number, outcome: StepOutcome | undefined): void {
    const { precision, tell } = this.#options;
    const { step, epoch, lr } = pending;
    const isApplied = outcome ? outcome.status === "applied" : true;
    const metrics: StepMetrics = {
      precision,
      step,
      epoch,
      loss: Number.isFinite(loss) ? loss : null,
      applied: isApplied,
      scale: outcome?.scaleBefore ?? this.scale,
      lr: typeof lr === "number" ? lr : lr(this.applied),
    };
    this.#unreported--;
    if (isApplied) this.applied++;
    this.#isLastApplied = isApplied;
    if (outcome) this.scale = outcome.scaleAfter;
    tell(metrics, outcome);
    if (isApplied && metrics.loss === null && !this.#options.allowNonFiniteLoss)
      throw new DivergenceError(step, precision);
  }

  async #drain(): Promise<{ outcomes: readonly StepOutcome[]; failure?: unknown }> {
    try {
      return { outcomes: await this.#options.scaler.drain() };
    } catch (failure) {
      return { outcomes: failure instanceof ScaleCollapseError ? failure.outcomes : [], failure };
    }
  }
}

/** The loss of a step. Waits for the device. */
async function meanLoss(losses: readonly MicroLoss[]): Promise<number> {
  const values = await Promise.all(losses.map(({ loss }) => lossValue(loss)));
  // A single loss is not changed by arithmetic.
  if (losses.length === 1) return values[0] as number;
  return losses.reduce((sum, { weight }, i) => sum + weight * (values[i] as number), 0);
}

export const lossValue = (loss: Tensor | number): Promise<number> | number =>
  typeof loss === "number" ? loss : loss.item();

const disposeOf = (loss: Tensor | number): void => {
  if (typeof loss !== "number") loss.dispose();
};

const known = (
  pending: PendingStep,
  loss: PromiseSettledResult<number> | undefined,
  outcome: StepOutcome | undefined,
): PendingStep => ({
  ...{ ...pending, outcome },
  losses: [{ loss: loss?.status === "fulfilled" ? loss.value : Number.NaN, weight: 1 }],
});
