import { type ExponentHistogram, exponentHistogram } from "@halfstep/formats";
import { bytesFor } from "@halfstep/formats/dtypes";
import { ScaleCollapseError, type ScalerStateDict, type StepOutcome } from "@halfstep/grad-scaler";
import type { StateDict } from "@halfstep/nn";
import { LostUpdateMeter, type OptimizerStateDict } from "@halfstep/optim";
import type { Plan, Runtime, StepOptions, Storage, Tensor } from "@halfstep/tensor";
import { parameterSha256 } from "@halfstep/trainer";
import type { TrainConfig } from "./config.js";
import { Loop } from "./loop.js";
import type { Setup } from "./setups.js";
import type { Task, TaskParts } from "./tasks/task.js";

/** What is known of a step. */
export interface StepPoint {
  readonly step: number;
  readonly loss: number;
  /** The loss scale of the step; absent without one. */
  readonly scale?: number;
  readonly isSkipped: boolean;
}

/** Gradients of a parameter by powers of two, as they are stored: times the loss scale. */
interface LayerHistogram {
  readonly name: string;
  readonly histogram: ExponentHistogram;
}

/** What is known of a lane besides its steps. */
export interface LaneStatistics {
  /** Share of updates that the stored weights lose; with float32 weights, the share that 16-bit ones would. */
  readonly lostUpdates: number;
  /** Bytes that a step takes, and bytes of weights with their 16-bit copies, of gradients, and of Adam's two moments. */
  readonly stepBytes: number;
  readonly keptBytes: number;
  readonly layers: readonly LayerHistogram[];
}

/** What a lane goes on from. */
export interface SavedLane {
  readonly model: StateDict;
  readonly optimizer: OptimizerStateDict;
  /** Empty without a loss scale. */
  readonly scaler: Partial<ScalerStateDict>;
  /** All steps so far. */
  readonly points: readonly StepPoint[];
  readonly origin?: string;
  readonly failure?: string;
}

/** One setup in training. Lanes of the same configuration see the same data in the same order. */
export class Lane {
  readonly setup: Setup;
  readonly runtime: Runtime;
  readonly #loop: Loop;
  readonly #meter: LostUpdateMeter<Storage>;
  #steps = 0;
  /** That of a training step: others may have run since. */
  #plan: Plan | undefined;
  #losses: { readonly step: number; readonly loss: Tensor }[] = [];
  readonly #points: StepPoint[] = [];
  /** The first result that was not finite, in words. */
  origin: string | undefined;
  /** Why the lane cannot go on. */
  failure: string | undefined;

  constructor(
    runtime: Runtime,
    setup: Setup,
    config: TrainConfig,
    makeTask: (parts: TaskParts) => Task,
  ) {
    this.runtime = runtime;
    this.setup = setup;
    this.#loop = new Loop(runtime, setup, config, makeTask);
    const format = setup.recipe.compute === "float16" ? "float16" : "bfloat16";
    this.#meter = new LostUpdateMeter(this.#loop.optimizer, { format, every: 4 });
  }

  get task(): Task {
    return this.#loop.task;
  }

  /** Steps so far. */
  get steps(): number {
    return this.#steps;
  }

  /** Submits one step, as soon as its programs are compiled. Nothing waits for it. */
  async step(options: StepOptions = {}): Promise<void> {
    const step = this.#steps++;
    const loss = await this.runtime.step(() => this.#loop.record(step), options);
    this.#plan = this.runtime.lastPlan;
    this.#losses.push({ step, loss });
  }

  /** The points of the steps since the last call. Waits for them. */
  async points(): Promise<readonly StepPoint[]> {
    const losses = this.#losses.splice(0);
    const outcomes = await this.#outcomes();
    const points = await Promise.all(
      losses.map(async ({ step, loss }): Promise<StepPoint> => {
        const outcome = outcomes.find((each) => each.step === step + 1);
        const value = await loss.item();
        loss.dispose();
        return outcome
          ? {
              step,
              loss: value,
              scale: outcome.scaleBefore,
              isSkipped: outcome.status === "skipped",
            }
          : { step, loss: value, isSkipped: false };
      }),
    );
    this.#points.push(...points);
    return points;
  }

  async #outcomes(): Promise<readonly StepOutcome[]> {
    if (!this.#loop.scaler.enabled) return [];
    try {
      const outcomes = await this.#loop.scaler.drain();
      for (const { cause } of outcomes) this.#note(cause);
      return outcomes;
    } catch (error) {
      if (!(error instanceof ScaleCollapseError)) throw error;
      this.failure = "The loss scale cannot get any smaller, and gradients are still infinite.";
      return error.outcomes;
    }
  }

  #note(cause: StepOutcome["cause"]): void {
    if (this.origin !== undefined || cause?.origin === undefined) return;
    this.origin = originText(cause.pass, cause.origin);
  }

  /** Figures that take a read of all gradients. */
  async statistics(): Promise<LaneStatistics> {
    // Reads of one turn share one wait, which takes 100 ms in Firefox.
    const histograms = [...this.task.model.namedParameters()].map(
      async ([name, { grad }]): Promise<LayerHistogram[]> =>
        grad ? [{ name, histogram: exponentHistogram(await grad.toArray()) }] : [],
    );
    const [{ total }, layers] = await Promise.all([this.#meter.read(), Promise.all(histograms)]);
    return {
      lostUpdates: total.lost,
      stepBytes: this.#plan?.statistics.peakBytes ?? 0,
      keptBytes: this.#keptBytes(),
      layers: layers.flat(),
    };
  }

  #keptBytes(): number {
    const { storage, recipe } = this.setup;
    const copy = storage === "float32" && recipe.compute !== "float32" ? 2 : 0;
    const moments = 2 * bytesFor("float32", 1);
    let bytes = 0;
    for (const [, { size, dtype, grad }] of this.task.model.namedParameters()) {
      bytes += bytesFor(dtype, size) + size * (copy + moments);
      if (grad !== undefined) bytes += bytesFor(grad.dtype, size);
    }
    return bytes;
  }

  /** The first half of the SHA-256 of all parameters; undefined on pages without https, where browsers have no SHA-256. */
  async hash(): Promise<string | undefined> {
    if (globalThis.crypto.subtle === undefined) return undefined;
    return (await parameterSha256(this.task.model.namedParameters())).slice(0, 32);
  }

  /** Everything that the next steps depend on, and what was seen so far. Waits for the steps. */
  async state(): Promise<SavedLane> {
    const { optimizer, scaler, task } = this.#loop;
    const [model, ofOptimizer, ofScaler] = await Promise.all([
      task.model.stateDict(),
      optimizer.stateDict(),
      scaler.stateDict(),
    ]);
    return {
      model,
      optimizer: ofOptimizer,
      scaler: ofScaler,
      points: this.#points,
      ...(this.origin !== undefined && { origin: this.origin }),
      ...(this.failure !== undefined && { failure: this.failure }),
    };
  }

  /** Goes on from a state: later steps have the bits of a lane that was never interrupted. */
  restore({ model, optimizer, scaler, points, origin, failure }: SavedLane): void {
    const { task, optimizer: own, scaler: scales } = this.#loop;
    task.model.loadStateDict(model);
    own.loadStateDict(optimizer);
    if (scales.enabled) scales.loadStateDict(scaler);
    this.#points.push(...points);
    this.#steps = points.length;
    this.origin = origin;
    this.failure = failure;
  }

  /** Releases all memory. */
  dispose(): void {
    this.runtime.dispose();
  }
}

type Cause = NonNullable<StepOutcome["cause"]>;

/** Where something that is not finite came up first, in words. */
export function originText(
  pass: Cause["pass"],
  { op, module, kind, element }: NonNullable<Cause["origin"]>,
): string {
  const [own, forward] = op.split(" in the backward of ");
  const gradient = forward === undefined ? "" : `, for the gradient of ${forward}`;
  const where = module === undefined ? "" : ` of ${module}`;
  return `${kind === "nan" ? "NaN" : "infinity"} in the ${pass} pass, first in ${own}${where}${gradient}, element ${element}`;
}
