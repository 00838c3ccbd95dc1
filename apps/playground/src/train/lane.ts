import { withRecipe } from "@halfstep/autocast";
import { type ExponentHistogram, exponentHistogram } from "@halfstep/formats";
import { GradScaler, ScaleCollapseError, type StepOutcome } from "@halfstep/grad-scaler";
import { applyRecipe } from "@halfstep/nn";
import { Adam, LostUpdateMeter } from "@halfstep/optim";
import {
  ampPrimitives,
  flattenByDType,
  type Plan,
  type Runtime,
  type StepOptions,
  type Storage,
  type Tensor,
} from "@halfstep/tensor";
import type { TrainConfig } from "./config.js";
import { type Setup, scalerOptionsOf } from "./setups.js";
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
  /** Bytes that a step takes, and bytes of parameters, gradients and the optimizer's state. */
  readonly stepBytes: number;
  readonly keptBytes: number;
  readonly layers: readonly LayerHistogram[];
}

/** One setup in training. Lanes of the same configuration see the same data in the same order. */
export class Lane {
  readonly setup: Setup;
  readonly task: Task;
  readonly runtime: Runtime;
  readonly #config: TrainConfig;
  readonly #optimizer: Adam<Storage>;
  readonly #scaler: GradScaler<Storage, Tensor>;
  readonly #meter: LostUpdateMeter<Storage>;
  #steps = 0;
  /** That of a training step: others may have run since. */
  #plan: Plan | undefined;
  #losses: { readonly step: number; readonly loss: Tensor }[] = [];
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
    this.#config = config;
    const { recipe, storage } = setup;
    this.task = makeTask({
      runtime,
      config,
      inPrecision: (fn) => withRecipe(recipe, fn as () => never),
    });
    const { model } = this.task;
    if (recipe.params !== "float32") applyRecipe(model, recipe);
    const groups = flattenByDType(model.parameters()).map((params) => ({ params }));
    this.#optimizer = new Adam(runtime.target, groups, { lr: config.lr, storage });
    this.#scaler = new GradScaler(
      ampPrimitives(runtime),
      scalerOptionsOf(setup, 2 ** config.scale),
    );
    const format = recipe.compute === "float16" ? "float16" : "bfloat16";
    this.#meter = new LostUpdateMeter(this.#optimizer, { format, every: 4 });
  }

  /** Steps so far. */
  get steps(): number {
    return this.#steps;
  }

  /** Submits one step, as soon as its programs are compiled. Nothing waits for it. */
  async step(options: StepOptions = {}): Promise<void> {
    const step = this.#steps++;
    const loss = await this.runtime.step(() => {
      // Gradients stay until the next step, to be looked at.
      this.#optimizer.zeroGrad();
      const loss = this.task.loss(step);
      const { shrink } = this.#config;
      this.#scaler.scale(shrink === 0 ? loss : loss.mul(2 ** -shrink)).backward();
      this.#scaler.step(this.#optimizer);
      this.#scaler.update();
      return loss;
    }, options);
    this.#plan = this.runtime.lastPlan;
    this.#losses.push({ step, loss });
  }

  /** The points of the steps since the last call. Waits for them. */
  async points(): Promise<readonly StepPoint[]> {
    const losses = this.#losses.splice(0);
    const outcomes = await this.#outcomes();
    return Promise.all(
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
  }

  async #outcomes(): Promise<readonly StepOutcome[]> {
    if (!this.#scaler.enabled) return [];
    try {
      const outcomes = await this.#scaler.drain();
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
    const { op, module, kind, element } = cause.origin;
    const where = module === undefined ? "" : ` of ${module}`;
    this.origin = `${kind === "nan" ? "NaN" : "infinity"} in the ${cause.pass} pass, first in ${op}${where}, element ${element}`;
  }

  /** Figures that take a read of all gradients. */
  async statistics(): Promise<LaneStatistics> {
    const { total } = await this.#meter.read();
    const layers: LayerHistogram[] = [];
    for (const [name, parameter] of this.task.model.namedParameters()) {
      if (parameter.grad === undefined) continue;
      layers.push({ name, histogram: exponentHistogram(await parameter.grad.toArray()) });
    }
    return {
      lostUpdates: total.lost,
      stepBytes: this.#plan?.statistics.peakBytes ?? 0,
      keptBytes: this.#plan?.residents.reduce((a, b) => a + b, 0) ?? 0,
      layers,
    };
  }

  /** The first half of the SHA-256 of all parameters, in the order of their names. */
  async hash(): Promise<string> {
    const named = [...this.task.model.namedParameters()].sort(([a], [b]) => (a < b ? -1 : 1));
    const values = await Promise.all(named.map(([, parameter]) => parameter.toArray()));
    const bytes = await new Blob(values.map((each) => Float32Array.from(each))).arrayBuffer();
    const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes)).subarray(0, 16);
    return [...digest].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  }

  /** Releases all memory. */
  dispose(): void {
    this.runtime.dispose();
  }
}
