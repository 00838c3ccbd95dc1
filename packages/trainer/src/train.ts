import { autocast } from "@halfstep/autocast";
import type { CounterValues, Device } from "@halfstep/device";
import type { GradScaler, ScaledOptimizer, StepOutcome } from "@halfstep/grad-scaler";
import type { PlanStatistics, Runtime, Storage, Tensor } from "@halfstep/tensor";
import type { Precision, StepCounters, StepMetrics } from "./summary.js";

/** The part of an optimizer that the loop uses. */
export interface TrainableOptimizer extends ScaledOptimizer<Storage> {
  zeroGrad(): void;
}

export interface TrainOptions<Batch> {
  readonly runtime: Runtime;
  /** The device of a GPU runtime, whose counters tell what a step costs. */
  readonly device?: Device | undefined;
  readonly precision: Precision;
  /** Records the forward pass of a batch and its loss, a scalar; under autocast where the precision is 16-bit. */
  readonly loss: (batch: Batch) => Tensor;
  readonly optimizer: TrainableOptimizer;
  /** Scales the loss. A disabled scaler is the identity. */
  readonly scaler: GradScaler<Storage, Tensor>;
  readonly epochs: number;
  /** The batches of an epoch, counted from 0. */
  readonly batches: (epoch: number) => Iterable<Batch>;
  /** The learning rate after this many applied steps: for the metrics. */
  readonly lr: (appliedSteps: number) => number;
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
  /** Median over steady state. */
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
  const { runtime, device, optimizer, scaler, signal } = options;
  const reporter = new Reporter(options);
  const meter = new StepMeter(device);
  let statistics: PlanStatistics | undefined;
  let step = 0;
  for (let epoch = 0; epoch < options.epochs && !signal?.aborted; epoch++) {
    for (const batch of options.batches(epoch)) {
      if (signal?.aborted) break;
      const before = meter.begin();
      const loss = await runtime.step(() => {
        const value = inPrecision(options.precision, () => options.loss(batch));
        scaler.scale(value).backward();
        scaler.step(optimizer);
        scaler.update();
        optimizer.zeroGrad();
        return value;
      });
      step++;
      // The last batch of an epoch may be smaller: the first step speaks for all.
      statistics ??= runtime.lastPlan?.statistics;
      meter.end(before, step);
      reporter.add({ step, epoch: epoch + 1, loss });
      if (step % reportInterval === 0) await reporter.report();
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
    perStep: meter.counters(statistics?.casts ?? 0, statistics?.launches ?? 0),
    isAborted: signal?.aborted ?? false,
  };
}

/** Runs `fn` as a precision wants: under autocast for the 16-bit ones. */
export const inPrecision = <T>(
  precision: Precision,
  fn: () => T extends PromiseLike<unknown> ? never : T,
): T =>
  precision === "float32"
    ? (fn as () => T)()
    : (autocast({ dtype: precision }, fn as () => never) as T);

/** Tells steps in order. Each report awaits the reads that the one before it began, so that the device is never idle. */
class Reporter {
  applied = 0;
  scale: number;
  readonly #options: Pick<TrainOptions<never>, "precision" | "scaler" | "lr" | "onStep">;
  #waiting: PendingStep[] = [];
  #underWay: Promise<void> = Promise.resolve();

  constructor(options: Pick<TrainOptions<never>, "precision" | "scaler" | "lr" | "onStep">) {
    this.#options = options;
    this.scale = options.scaler.enabled ? options.scaler.rule.initScale : 1;
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

  async #tell(steps: readonly PendingStep[]): Promise<void> {
    const { scaler, precision, onStep, lr } = this.#options;
    const [losses, outcomes] = await Promise.all([
      Promise.all(steps.map(({ loss }) => loss.item())),
      scaler.drain(),
    ]);
    for (const { loss } of steps) loss.dispose();
    const byStep = new Map(outcomes.map((outcome) => [outcome.step, outcome]));
    for (const [i, { step, epoch }] of steps.entries()) {
      const outcome = byStep.get(step);
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
      if (outcome) this.scale = outcome.scaleAfter;
      onStep?.(metrics, outcome);
    }
  }
}

/** Counts and times steps once the first ones have compiled and allocated what they need. */
class StepMeter {
  readonly #device: Device | undefined;
  readonly #samples: CounterValues[] = [];
  readonly #windows: number[] = [];
  #windowStart = performance.now();

  constructor(device: Device | undefined) {
    this.#device = device;
  }

  begin(): CounterValues | undefined {
    return this.#device?.counters.snapshot();
  }

  end(before: CounterValues | undefined, step: number): void {
    const place = step % reportInterval;
    // Between reports no read of ours is under way, so what is counted is the step's own.
    if (before && this.#device && step > reportInterval && place === reportInterval / 2)
      this.#samples.push(this.#device.counters.since(before));
    if (place !== 0) return;
    const now = performance.now();
    if (step > reportInterval) this.#windows.push((now - this.#windowStart) / reportInterval);
    this.#windowStart = now;
  }

  medianMilliseconds(): number {
    return median(this.#windows);
  }

  counters(casts: number, launches: number): StepCounters {
    const of = (name: keyof CounterValues): number => median(this.#samples.map((s) => s[name]));
    if (this.#samples.length === 0)
      return {
        hostWaits: 0,
        submits: 0,
        dispatches: launches,
        castDispatches: casts,
        buffersCreated: 0,
        bindGroupsCreated: 0,
      };
    return {
      hostWaits: of("hostWaits"),
      submits: of("submits"),
      dispatches: of("dispatches"),
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
