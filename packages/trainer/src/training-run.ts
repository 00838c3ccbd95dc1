import type { CompileProgress } from "@halfstep/device";
import { type AccumulationWindow, accumulationWindow } from "@halfstep/grad-scaler";
import type { PlanStatistics, Storage, Tensor } from "@halfstep/tensor";
import { BatchSource } from "./batch-source.js";
import type { Checkpoint } from "./checkpoint/checkpoint.js";
import { CheckpointError } from "./checkpoint/checkpoint-error.js";
import { DeviceClock } from "./device-clock.js";
import { DivergenceError } from "./errors.js";
import { isDue, type Training, type TrainingHook } from "./hooks.js";
import { hyperparametersOf } from "./hyperparameters.js";
import { said } from "./option-kinds.js";
import { PhaseMeter } from "./phase-meter.js";
import { inPrecision } from "./precision.js";
import { reportedRate } from "./reported-rate.js";
import { lossValue, type MicroLoss, Reporter, reportInterval } from "./reporter.js";
import { atOnce, type Listener, type Reports, toldToAll } from "./reports.js";
import type { StatefulModel } from "./stateful.js";
import { StepMeter } from "./step-meter.js";
import type { EvaluationMetrics } from "./summary.js";
import type { TrainableOptimizer, TrainOptions, TrainResult } from "./train.js";
import {
  collectStates,
  lostParameter,
  restoreGradients,
  type Setting,
  type TrainingCheckpoints,
  type TrainingState,
} from "./training-state.js";
import { aborted } from "./until-aborted.js";

type Window = AccumulationWindow<Storage, Tensor, TrainableOptimizer, [count: number]>;

/** The place from which training continues, with its state. */
export interface Place {
  readonly state: TrainingState;
  readonly setting: Setting;
  /** Steps that the scaler counted before training. */
  readonly stepsBefore: number;
  /** Of callbacks that report. */
  readonly reports: Reports;
}

/** One call of `train()`. */
export class TrainingRun<Batch> {
  readonly #options: TrainOptions<Batch>;
  readonly #hooks: Readonly<Record<string, TrainingHook>>;
  readonly #reporter: Reporter;
  readonly #reports: Reports;
  readonly #tellEvaluation: Listener<[metrics: EvaluationMetrics]>;
  readonly #tellCompile: Listener<[progress: CompileProgress]>;
  readonly #meter: StepMeter;
  readonly #phases: PhaseMeter;
  readonly #clock: DeviceClock | undefined;
  readonly #start: TrainingState;
  readonly #setting: Setting;
  /** The checkpoint, until its gradients (if any) are restored. */
  #checkpoint: Checkpoint | undefined;
  #step: number;
  #epoch: number;
  #batch: number;
  /** Completed micro-steps of the current step. */
  #micro: MicroLoss[] = [];
  #window: Window | undefined;
  #isAborted = false;
  /** The hooks whose work a signal has ended. Of ranks it may be one alone, so that this has no part in what they do together. */
  readonly #interrupted = new Set<string>();
  #hasEnded = false;
  /** Whether hooks were not called after the last step, because the signal came before it was known whether the epoch ends with it. */
  #owesHooks: boolean;
  #isStopped: boolean;
  /** The hook that has ended training. */
  #stoppedBy: string | undefined;
  /** The place of the last saved or loaded checkpoint. */
  #saved: string;
  /** Statistics of the plans of the first step's micro-steps. */
  readonly #plans: PlanStatistics[] = [];

  constructor(
    options: TrainOptions<Batch>,
    { state, setting, stepsBefore, reports }: Place,
    checkpoint: Checkpoint | undefined,
  ) {
    const { scaler, device, hooks = {}, allowNonFiniteLoss = false } = options;
    this.#options = options;
    this.#hooks = hooks;
    this.#start = state;
    this.#setting = setting;
    this.#checkpoint = checkpoint;
    this.#step = state.step;
    this.#epoch = state.epoch;
    this.#batch = state.batch;
    this.#stoppedBy = state.stoppedBy;
    const decidesAnew = hooks[state.stoppedBy ?? ""]?.onResume !== undefined;
    this.#isStopped = state.isStopped && !decidesAnew;
    this.#owesHooks = state.owesHooks === true;
    this.#saved = placeOf(state.step, state.microLosses.length, this.#owesHooks);
    // Called as members: a hook may be an instance of a class.
    const listeners: readonly TrainingHook[] = [options, ...Object.values(hooks)];
    const toAll = <Told extends readonly unknown[]>(call: (hook: TrainingHook) => Listener<Told>) =>
      toldToAll(listeners.map(call), reports);
    const tell: NonNullable<TrainingHook["onStep"]> = toAll(
      (hook) => (metrics, outcome) => hook.onStep?.(metrics, outcome),
    );
    this.#tellEvaluation = toAll((hook) => (metrics) => hook.onEvaluation?.(metrics));
    this.#tellCompile = toAll((hook) => (progress) => hook.onCompile?.(progress));
    this.#reports = reports;
    const lr = reportedRate(options.optimizer, options.lr);
    const reporting = { scaler, lr, precision: state.recipe, allowNonFiniteLoss, tell };
    this.#reporter = new Reporter(reporting, state, stepsBefore);
    this.#meter = new StepMeter(device);
    this.#phases = new PhaseMeter(device);
    this.#clock = DeviceClock.on(device);
  }

  async train(): Promise<void> {
    const { batches, batchesFrom } = this.#options;
    const isBetweenSteps = this.#start.microLosses.length === 0;
    if (this.#checkpoint && isBetweenSteps)
      await this.#callHooks("onResume", this.#batch === 0 && this.#epoch > 0);
    while (this.#owesHooks ? !this.#isCancelled() : !this.#isOver()) {
      const epoch = this.#epoch;
      const first = this.#batch;
      const isPositioned = first > 0 && batchesFrom !== undefined;
      const source = new BatchSource(
        isPositioned ? batchesFrom(epoch, first) : batches(epoch),
        this.#signalOfWaits(),
      );
      try {
        if (!isPositioned) await this.#skip(source, first);
        const hasNext = await this.#hasNext(source);
        if (hasNext === undefined) break;
        if (this.#owesHooks) await this.#endStep(hasNext);
        else if (!hasNext && first === 0)
          throw new RangeError(
            `epoch ${epoch + 1} has no batches: give batches() new ones for each epoch, since a generator ends with its first`,
          );
        else if (!hasNext) this.#endEpoch();
        while (this.#epoch === epoch && !this.#isOver()) await this.#stepFrom(source);
      } finally {
        await source.close();
      }
    }
    this.#reports.check();
    const { checkpoints } = this.#options;
    if (this.#step > this.#start.step && this.#micro.length === 0) await this.#end();
    if (this.#isAborted || (checkpoints?.atEnd ?? true)) await this.#save(false);
    await this.#reporter.flush();
    await this.#reports.settled();
    this.#forgetWindow();
  }

  /** After a failure: reports the known steps, and resets the scaler to before the current step. */
  async giveUp(): Promise<void> {
    await this.#reporter.flushRest();
    try {
      this.#forgetWindow();
    } catch {
      // A lost device takes no more launches; the earlier failure has reported it.
    }
  }

  async result(): Promise<TrainResult> {
    const { applied, scale } = this.#reporter;
    const { activationBytes, stepBytes } = this.#bytes();
    const sum = (of: "casts" | "launches"): number =>
      this.#plans.reduce((total, plan) => total + plan[of], 0);
    return {
      steps: this.#step,
      appliedSteps: applied,
      skippedSteps: this.#step - applied,
      finalScale: scale,
      msPerStep: this.#meter.medianMilliseconds(),
      activationBytes,
      stepBytes,
      perStep: this.#meter.counters({ casts: sum("casts"), launches: sum("launches") }),
      deviceMsPerStep: await this.#clock?.median(),
      phases: this.#phases.costs(),
      hyperparameters: hyperparametersOf(this.#options.optimizer, this.#options.scaler),
      isAborted: this.#isAborted || this.#interrupted.size > 0,
      isStopped: this.#isStopped,
      resumedAt: this.#start.step,
    };
  }

  /** Whether training is over; the signal counts only while steps remain. */
  #isOver(): boolean {
    const { epochs, maxSteps = Number.POSITIVE_INFINITY, signal } = this.#options;
    if (this.#isStopped || this.#epoch >= epochs || this.#step >= maxSteps) return true;
    this.#isAborted = signal?.aborted ?? false;
    return this.#isAborted;
  }

  /** Whether training is over where hooks are still to be called after the last step. */
  #isCancelled(): boolean {
    this.#isAborted ||= this.#options.signal?.aborted ?? false;
    return this.#isStopped || this.#isAborted;
  }

  /**
   * The signal ends waits for the loader. Ranks of a job wait for theirs all the same: all of them have to end after the same step, with the
   * same calls of hooks.
   */
  #signalOfWaits(): AbortSignal | undefined {
    const { reduce, signal } = this.#options;
    const isRank = reduce || Object.values(this.#hooks).some((hook) => hook.needsEqualSteps);
    return isRank ? undefined : signal;
  }

  async #skip(source: BatchSource<Batch>, count: number): Promise<void> {
    const skipped = await source.skip(count);
    if (skipped !== aborted && skipped < count && this.#checkpoint)
      throw new CheckpointError(
        "misfit",
        this.#checkpoint.path,
        `was saved after ${count} batches of epoch ${this.#epoch + 1}, which has only ${skipped} now: train on the same data`,
      );
  }

  /** Whether the epoch has another batch; undefined where the signal has ended the wait for it. */
  async #hasNext(source: BatchSource<Batch>): Promise<boolean | undefined> {
    const hasNext = await this.#phases.during("data", () => source.hasNext());
    if (hasNext !== aborted) return hasNext;
    this.#isAborted = true;
    return undefined;
  }

  #endEpoch(): void {
    this.#epoch++;
    this.#batch = 0;
  }

  /** One step, with its repetitions under `onOverflow: "retry"`. */
  async #stepFrom(source: BatchSource<Batch>): Promise<void> {
    const { accumulate = 1, onOverflow = "skip" } = this.#options;
    this.#reports.check();
    const batches = await this.#phases.during("data", () => source.take(accumulate));
    if (batches === aborted) {
      this.#isAborted = true;
      return;
    }
    const counts = this.#countsOf(batches);
    for (let isDone = false; !isDone && !this.#isOver(); ) {
      this.#meter.begin();
      const endSample = this.#isSampled() ? this.#clock?.begin() : undefined;
      const isComplete = await this.#accumulate(batches, counts);
      endSample?.();
      if (!isComplete) return;
      this.#meter.end(++this.#step - this.#start.step);
      this.#reporter.add({ step: this.#step, epoch: this.#epoch + 1, losses: this.#micro });
      this.#micro = [];
      if (this.#step % reportInterval === 0) await this.#reporter.report();
      isDone = onOverflow === "skip" || (await this.#reporter.isLastApplied());
      if (isDone) this.#batch += batches.length;
      const hasNext = isDone ? await this.#hasNext(source) : true;
      await this.#endStep(hasNext);
    }
  }

  /** Calls hooks. Where it is unknown whether the epoch has another batch, they are called when training goes on from here. */
  async #endStep(hasNext: boolean | undefined): Promise<void> {
    this.#owesHooks = hasNext === undefined;
    if (hasNext === undefined) return;
    if (!hasNext) this.#endEpoch();
    await this.#callHooks("afterStep", !hasNext);
  }

  /** The weights of micro-steps. Where a process only repeats samples of others, whose mean it takes does not matter. */
  #countsOf(batches: readonly Batch[]): readonly number[] {
    const { samples = () => 1 } = this.#options;
    const counts = batches.map((batch) => atOnce("samples()", samples(batch)));
    for (const count of counts)
      if (!(count >= 0 && Number.isFinite(count)))
        throw new RangeError(
          `samples() gave ${said(count)} for a batch: it must be a number from 0 on`,
        );
    return counts.some((count) => count > 0) ? counts : counts.map(() => 1);
  }

  /** Steps whose counters are read are not timed, because submits of the clock would count as theirs. */
  #isSampled(): boolean {
    const step = this.#step - this.#start.step;
    return step > reportInterval && step % reportInterval === reportInterval / 4;
  }

  /** Runs the micro-steps of one step. Returns false where the signal came in between. */
  async #accumulate(batches: readonly Batch[], counts: readonly number[]): Promise<boolean> {
    const { scaler, optimizer, runtime } = this.#options;
    const total = counts.reduce((sum, count) => sum + count, 0);
    const window = accumulationWindow(scaler, optimizer, { samples: total });
    this.#window = window;
    await this.#restoreWindow(window, counts);
    for (const i of batches.keys()) {
      if (i < this.#micro.length) continue;
      if (i > 0 && this.#isOver()) return false;
      const count = counts[i] as number;
      const loss = await this.#phases.step((recording) =>
        runtime.step(
          recording(() => this.#record(batches, i, count, window)),
          {
            onCompile: (progress) => {
              this.#meter.compiling(progress);
              this.#tellCompile(progress);
            },
          },
        ),
      );
      if (this.#step === this.#start.step && runtime.lastPlan)
        this.#plans.push(runtime.lastPlan.statistics);
      this.#micro.push({ loss, weight: count / total });
    }
    this.#window = undefined;
    return true;
  }

  #record(batches: readonly Batch[], index: number, count: number, window: Window): Tensor {
    const { precision, loss, reduce, clip } = this.#options;
    const value = inPrecision(precision, () => atOnce("loss()", loss(batches[index] as Batch)));
    if (typeof value?.backward !== "function")
      throw new TypeError(
        `loss() gave ${said(value)}: it must return a tensor, the loss of its batch`,
      );
    window.scale(value, count).backward();
    if (index < batches.length - 1) return value;
    atOnce("reduce()", reduce?.(batches));
    window.step(clip ? { clip } : {});
    for (const [name, hook] of Object.entries(this.#hooks))
      atOnce(`record() of the hook ${name}`, hook.record?.());
    return value;
  }

  /** Restores the gradients of a step that the checkpoint has begun. */
  async #restoreWindow(window: Window, counts: readonly number[]): Promise<void> {
    const checkpoint = this.#checkpoint;
    const { runtime, scaler, checkpoints } = this.#options;
    const { microLosses } = this.#start;
    this.#checkpoint = undefined;
    if (!checkpoint || !checkpoints || microLosses.length === 0) return;
    if (microLosses.length >= counts.length)
      throw new CheckpointError(
        "misfit",
        checkpoint.path,
        `has ${microLosses.length} micro-steps of a step that has only ${counts.length} now: train on the same data`,
      );
    const total = counts.reduce((sum, count) => sum + count, 0);
    await runtime.step(() => {
      restoreGradients(runtime, checkpoints.parts.model, scaler, checkpoint);
      // The scaler counts the micro-steps and checks their losses again.
      for (const [i, loss] of microLosses.entries())
        window.scale(runtime.tensor(loss), counts[i] as number);
    });
    this.#micro = microLosses.map((loss, i) => ({ loss, weight: (counts[i] as number) / total }));
  }

  async #callHooks(member: "afterStep" | "onResume", isEpochEnd: boolean): Promise<void> {
    const { checkpoints } = this.#options;
    let isWanted = false;
    let isBest = false;
    let isSettling = false;
    let called = "";
    const training: Training = {
      step: this.#step,
      epochs: this.#epoch,
      isEpochEnd,
      stop: () => {
        this.#isStopped = true;
        this.#stoppedBy = called;
      },
      interrupted: () => {
        this.#interrupted.add(called);
      },
      settled: () => {
        isSettling = true;
        return this.#reporter.flush().then(() => this.#meter.pause());
      },
      save: ({ best = false } = {}) => {
        isWanted = true;
        isBest ||= best;
      },
      evaluated: async (values, { best = false } = {}) => {
        await this.#reporter.flush();
        this.#interrupted.delete(called);
        // The checkpoint that training went on from has no such evaluation.
        this.#saved = "";
        this.#tellEvaluation({
          ...{ kind: "evaluation", precision: this.#start.recipe, step: this.#step },
          ...{ epoch: this.#epoch + (isEpochEnd ? 0 : 1), best, values: finiteOnly(values) },
        });
      },
    };
    for (const [name, hook] of Object.entries(this.#hooks)) {
      called = name;
      const underWay = hook[member]?.(training);
      if (!underWay) continue;
      if (!isSettling) this.#meter.pause();
      await this.#phases.during("evaluation", async () => underWay);
    }
    if (this.#isOver()) await this.#end();
    isWanted ||= checkpoints?.every !== undefined && isDue(checkpoints.every, training);
    if (isWanted) await this.#save(isBest);
  }

  /** Tells hooks once that training has ended. */
  async #end(): Promise<void> {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    for (const hook of Object.values(this.#hooks)) await hook.onEnd?.();
  }

  async #save(best: boolean): Promise<void> {
    const { checkpoints } = this.#options;
    const place = placeOf(this.#step, this.#micro.length, this.#owesHooks);
    if (!checkpoints || (place === this.#saved && !best)) return;
    // While its gradients are not restored, nothing was trained since the checkpoint, and states would be saved without them.
    if (this.#checkpoint && this.#start.microLosses.length > 0) return;
    // Throws after a failure of the device: a checkpoint would be wrong then.
    await this.#reporter.flush();
    this.#meter.pause();
    await this.#phases.during("checkpoint", () => this.#write(checkpoints, best));
    this.#saved = place;
  }

  async #write({ store, parts }: TrainingCheckpoints, best: boolean): Promise<void> {
    const { scaler, allowNonFiniteLoss = false } = this.#options;
    for (const hook of Object.values(this.#hooks)) await hook.beforeSave?.();
    const training: TrainingState = {
      ...this.#setting,
      ...{ step: this.#step, epoch: this.#epoch, batch: this.#batch },
      microLosses: await Promise.all(this.#micro.map(({ loss }) => lossValue(loss))),
      ...{ applied: this.#reporter.applied, scale: this.#reporter.scale },
      ...this.#bytes(),
      ...(this.#owesHooks && { owesHooks: true }),
      ...(this.#isStopped ? { isStopped: true, stoppedBy: this.#stoppedBy } : { isStopped: false }),
    };
    const everything = { parts, scaler, hooks: this.#hooks };
    const states = await collectStates(everything, training);
    if (!allowNonFiniteLoss) this.#requireNumbers(parts.model, states.model);
    await store.save({
      step: this.#step,
      microStep: this.#micro.length,
      best,
      tables: this.#setting.tables,
      parts: states,
    });
    for (const hook of Object.values(this.#hooks)) await hook.afterSave?.();
  }

  /** A checkpoint with NaN would be the newest whole one, and training could not go on from it. */
  #requireNumbers(model: StatefulModel, state: unknown): void {
    const lost = lostParameter(model, state);
    if (lost !== undefined) throw new DivergenceError(this.#step, this.#start.recipe, lost);
  }

  /** The figures of the first step, because the last batch of an epoch may be smaller. */
  #bytes(): Pick<TrainingState, "activationBytes" | "stepBytes"> {
    const { activationBytes, stepBytes } = this.#start;
    if (stepBytes > 0) return { activationBytes, stepBytes };
    const most = (of: "activationBytes" | "peakBytes"): number =>
      Math.max(0, ...this.#plans.map((plan) => plan[of]));
    return { activationBytes: most("activationBytes"), stepBytes: most("peakBytes") };
  }

  #forgetWindow(): void {
    this.#window?.reset();
    this.#window = undefined;
  }
}

/** A place at which states are saved. */
const placeOf = (step: number, micro: number, owesHooks: boolean): string =>
  `${step}.${micro}.${owesHooks}`;

/** JSON has no NaN: such values become null. */
const finiteOnly = (values: Readonly<Record<string, number>>): EvaluationMetrics["values"] =>
  Object.fromEntries(
    Object.entries(values).map(([name, value]) => [name, Number.isFinite(value) ? value : null]),
  );
