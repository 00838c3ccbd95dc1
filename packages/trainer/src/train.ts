import type { CounterValues, Device } from "@halfstep/device";
import type { GradScaler, ScaledOptimizer, StepOutcome } from "@halfstep/grad-scaler";
import type { PlanStatistics, Runtime, Storage, Tensor } from "@halfstep/tensor";
import { inPrecision, recipeFor, type TrainingPrecision } from "./precision.js";
import type { StepCounters, StepMetrics } from "./summary.js";

/** The part of an optimizer that the loop uses. */
export interface TrainableOptimizer extends ScaledOptimizer<Storage> {
  zeroGrad(): void;
}

export interface TrainOptions<Batch> {
  readonly runtime: Runtime;
  /** The device of a GPU runtime, whose counters tell what a step costs. */
  readonly device?: Device | undefined;
  /** The recipe that the model runs by; apply it to the model (`applyRecipe`) where it is not one of torch.amp's. */
  readonly precision: TrainingPrecision;
  /** Records the forward pass of a batch and its loss, a scalar; under autocast where the recipe casts op by op. */
  readonly loss: (batch: Batch) => Tensor;
  readonly optimizer: TrainableOptimizer;
  /** Scales the loss. A disabled scaler is the identity. */
  readonly scaler: GradScaler<Storage, Tensor>;
  readonly epochs: number;
  /** The batches of an epoch, counted from 0. */
  readonly batches: (epoch: number) => Iterable<Batch>;
  /** The learning rate after this many applied steps of this call: for the metrics. */
  readonly lr: (appliedSteps: number) => number;
  /**
   * What becomes of a batch whose gradients overflowed: `"skip"` goes on to the next one, `"retry"` runs the batch again with
   * the scale that is left, and so waits for the device after each step. Default "skip".
   */
  readonly onOverflow?: "skip" | "retry";
  /** Called for every step, in order, up to {@link reportInterval} steps late: what a step did is known when the device tells. */
  readonly onStep?: (metrics: StepMetrics, outcome: StepOutcome | undefined) => void;
  /** Ends training after the step that is under way. */
  readonly signal?: AbortSignal | undefined;
}

export interface TrainResult {
  readonly steps: number;
  readonly appliedSteps: number;
  readonly skippedSteps: number;
  /** 1 without scaling. */
  readonly finalScale: number;
  /** Median over steady state; the mean over all steps of a run too short to have one. */
  readonly msPerStep: number;
  /** Bytes that the forward pass of a step keeps for its backward pass. */
  readonly activationBytes: number;
  /** Bytes that the plan of a step holds at most, parameters and optimizer state aside. */
  readonly stepBytes: number;
  readonly perStep: StepCounters;
  /** True where `signal` ended training early. */
  readonly isAborted: boolean;
}

/** Steps between two looks at losses and outcomes. */
export const reportInterval = 16;

interface PendingStep {
  readonly step: number;
  readonly epoch: number;
  readonly loss: Tensor;
}

/**
 * The training loop: forward, scaled backward, guarded step, update, for every batch of every epoch. No step waits for the
 * device; losses and the scaler's outcomes follow every {@link reportInterval} steps.
 */
export async function train<Batch>(options: TrainOptions<Batch>): Promise<TrainResult> {
  const { runtime, device, optimizer, scaler, signal, onOverflow = "skip" } = options;
  const recipe = recipeFor(options.precision);
  if (onOverflow === "retry" && !(scaler.enabled && scaler.rule.dynamic))
    throw new RangeError(
      'onOverflow is "retry", but the loss scale is not dynamic: the batch would overflow again; use "skip"',
    );
  // A scaler that has been used, or has loaded a state, counts on from there.
  const { scale = 1, step: stepsBefore = 0 } = await scaler.stateDict();
  const reporter = new Reporter({ ...options, precision: recipe.name }, { scale, stepsBefore });
  const meter = new StepMeter(device);
  let statistics: PlanStatistics | undefined;
  let step = 0;
  let isAborted = false;
  for (let epoch = 0; epoch < options.epochs && !isAborted; epoch++) {
    for (const batch of options.batches(epoch)) {
      for (let isDone = false; !isDone; ) {
        isAborted = signal?.aborted ?? false;
        if (isAborted) break;
        meter.begin();
        const loss = await runtime.step(() => {
          const value = inPrecision(recipe, () => options.loss(batch));
          scaler.scale(value).backward();
          scaler.step(optimizer);
          scaler.update();
          optimizer.zeroGrad();
          return value;
        });
        step++;
        // The last batch of an epoch may be smaller: the first step speaks for all.
        statistics ??= runtime.lastPlan?.statistics;
        meter.end(step);
        reporter.add({ step, epoch: epoch + 1, loss });
        if (step % reportInterval === 0) await reporter.report();
        isDone = onOverflow === "skip" || (await reporter.isLastApplied());
      }
      if (isAborted) break;
    }
  }
  await reporter.report();
  await reporter.report();
  return {
    steps: step,
    appliedSteps: reporter.applied,
    skippedSteps: step - reporter.applied,
    finalScale: reporter.scale,
    msPerStep: meter.medianMilliseconds(),
    activationBytes: statistics?.activationBytes ?? 0,
    stepBytes: statistics?.peakBytes ?? 0,
    perStep: meter.counters(statistics ?? { casts: 0, launches: 0 }),
    isAborted,
  };
}

interface ReporterOptions extends Pick<TrainOptions<never>, "scaler" | "lr" | "onStep"> {
  readonly precision: string;
}

/** Tells steps in order. Each report awaits the reads that the one before it began, so that the device is never idle. */
class Reporter {
  applied = 0;
  scale: number;
  readonly #options: ReporterOptions;
  /** Steps that the scaler had counted when training began. */
  readonly #stepsBefore: number;
  #waiting: PendingStep[] = [];
  #underWay: Promise<void> = Promise.resolve();
  #isLastApplied = true;

  constructor(
    options: ReporterOptions,
    { scale, stepsBefore }: { readonly scale: number; readonly stepsBefore: number },
  ) {
    this.#options = options;
    this.#stepsBefore = stepsBefore;
    this.scale = scale;
  }

  add(pending: PendingStep): void {
    this.#waiting.push(pending);
  }

  async report(): Promise<void> {
    await this.#underWay;
    const steps = this.#waiting;
    this.#waiting = [];
    this.#underWay = this.#tell(steps);
    // A failure is the next report's to throw; until then it must not count as unhandled.
    this.#underWay.catch(() => {});
  }

  /** Reports all steps so far, and tells whether the last one changed the parameters. Waits for the device. */
  async isLastApplied(): Promise<boolean> {
    await this.report();
    await this.#underWay;
    return this.#isLastApplied;
  }

  async #tell(steps: readonly PendingStep[]): Promise<void> {
    const { scaler, precision, onStep, lr } = this.#options;
    const [losses, outcomes] = await Promise.all([
      Promise.all(steps.map(({ loss }) => loss.item())),
      scaler.drain(),
    ]);
    for (const { loss } of steps) loss.dispose();
    const byStep = new Map(outcomes.map((outcome) => [outcome.step, outcome]));
    for (const [i, { step, epoch }] of steps.entries()) {
      const outcome = byStep.get(this.#stepsBefore + step);
      const isApplied = outcome ? outcome.status === "applied" : true;
      const loss = losses[i] as number;
      const metrics: StepMetrics = {
        precision,
        step,
        epoch,
        loss: Number.isFinite(loss) ? loss : null,
        applied: isApplied,
        scale: outcome?.scaleBefore ?? this.scale,
        lr: lr(this.applied),
      };
      if (isApplied) this.applied++;
      this.#isLastApplied = isApplied;
      if (outcome) this.scale = outcome.scaleAfter;
      onStep?.(metrics, outcome);
    }
  }
}

/** Counts and times steps, where there are enough of them once the first have compiled and allocated what they need. */
class StepMeter {
  readonly #device: Device | undefined;
  readonly #samples: CounterValues[] = [];
  readonly #windows: number[] = [];
  readonly #started: number = performance.now();
  #windowStart: number = this.#started;
  #before: CounterValues | undefined;
  #latest: CounterValues | undefined;
  #steps = 0;

  constructor(device: Device | undefined) {
    this.#device = device;
  }

  begin(): void {
    this.#before = this.#device?.counters.snapshot();
  }

  end(step: number): void {
    if (this.#device && this.#before) this.#latest = this.#device.counters.since(this.#before);
    this.#steps = step;
    const place = step % reportInterval;
    // Between reports no read of ours is under way, so what is counted is the step's own.
    if (this.#latest && step > reportInterval && place === reportInterval / 2)
      this.#samples.push(this.#latest);
    if (place !== 0) return;
    const now = performance.now();
    if (step > reportInterval) this.#windows.push((now - this.#windowStart) / reportInterval);
    this.#windowStart = now;
  }

  /** To be asked when the device has finished the last step. */
  medianMilliseconds(): number {
    if (this.#windows.length > 0) return median(this.#windows);
    return this.#steps === 0 ? 0 : (performance.now() - this.#started) / this.#steps;
  }

  counters({ casts, launches }: Pick<PlanStatistics, "casts" | "launches">): StepCounters {
    const samples = this.#samples.length === 0 && this.#latest ? [this.#latest] : this.#samples;
    const of = (name: keyof CounterValues): number => median(samples.map((s) => s[name]));
    return {
      hostWaits: of("hostWaits"),
      submits: of("submits"),
      dispatches: this.#device ? of("dispatches") : launches,
      castDispatches: casts,
      buffersCreated: of("buffersCreated"),
      bindGroupsCreated: of("bindGroupsCreated"),
    };
  }
}

function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? 0;
}
