import { type Recipe, recipeOf } from "@halfstep/autocast";
import type { Device, HalfDType } from "@halfstep/device";
import { bytesFor } from "@halfstep/formats/dtypes";
import { applyRecipe, evaluationMode, type Module } from "@halfstep/nn";
import { noGrad, type Runtime, Tensor } from "@halfstep/tensor";
import { DeviceClock } from "./device-clock.js";
import { type Kinds, requireKinds, said } from "./option-kinds.js";
import { type Fingerprint, fingerprintOf, isOverwritten } from "./overwritten-batch.js";
import { PhaseMeter } from "./phase-meter.js";
import { inPrecision, recipeFor, type TrainingPrecision } from "./precision.js";
import { atOnce } from "./reports.js";
import { requireOptions } from "./required-options.js";

/** Options of a predictor. */
export interface PredictorOptions<Sample, Output, Result> {
  readonly runtime: Runtime;
  /** The device of a GPU runtime: for {@link Predictor.usage}. */
  readonly device?: Device | undefined;
  readonly model: Module;
  /**
   * Records the forward pass of some samples: a tensor, or several in objects and lists. It runs in evaluation mode, without
   * gradients, in the selected precision.
   */
  readonly forward: (samples: readonly Sample[]) => Output;
  /** The most samples that `forward` gets. */
  readonly batchSize: number;
  /**
   * Reads the results of the samples, one for each, from what `forward` has returned; its tensors are disposed afterwards.
   * Default: for one tensor [samples, …], a typed array of each sample's elements. The samples of the next batch are made before: where they
   * are written over these, `read` finds those.
   */
  readonly read?: (output: Output, samples: readonly Sample[]) => Promise<readonly Result[]>;
  /** The recipe that is already applied to the model. Default: the dtype of its parameters. */
  readonly precision?: TrainingPrecision | undefined;
}

/** A sample's elements of the tensor that `forward` has returned. */
export type Row = Float32Array | Float64Array | Int32Array | Uint32Array;

/** The cost of predictions since the predictor was made or its precision changed. */
export interface PredictorUsage {
  readonly samples: number;
  readonly batches: number;
  /** On the host's clock, without the time for samples and for the consumer of results. */
  readonly milliseconds: number;
  /** Median time of a batch on the GPU's clock; undefined where the device has no timestamps. */
  readonly deviceMsPerBatch: number | undefined;
  /** Bytes of the model's parameters and buffers. */
  readonly parameterBytes: number;
  /** Peak bytes of the last batch's plan, without parameters. */
  readonly batchBytes: number;
  /** The largest observed pooled memory of the device; 0 on the CPU. */
  readonly peakBytes: number;
}

const kinds: Kinds<PredictorOptions<never, never, never>> = {
  ...{ runtime: "any", device: "any", model: "any", forward: "function", batchSize: "any" },
  ...{ read: "function", precision: "any" },
};

/**
 * Runs a model for inference: from samples to results, in batches, in evaluation mode, without gradients, in float32 or half
 * precision. While the device computes one batch the host prepares the next.
 *
 * @example
 * const predictor = new Predictor({
 *   runtime, model, batchSize: 64,
 *   forward: (images) => softmax(model.forward(batchOf(images))),
 * });
 * predictor.half();
 * const probabilities = await predictor.predict(images);
 */
export class Predictor<Sample, Output = Tensor, Result = Row> {
  readonly #options: PredictorOptions<Sample, Output, Result>;
  #precision: Recipe | undefined;
  #phases: PhaseMeter;
  #clock: DeviceClock | undefined;
  #samples = 0;
  #batches = 0;
  #milliseconds = 0;
  #batchBytes = 0;
  /** Streams under way. */
  #streams = 0;
  /** Gives the model its modes back after the last of them. */
  #goOn: (() => void) | undefined;
  /** Resolves when the step of the batch before is submitted: a runtime takes one at a time. */
  #turn: Promise<void> = Promise.resolve();
  /** Waits under way, and when the first of them began. */
  #waits = 0;
  #waitingSince = 0;
  #isDisposed = false;

  /** @throws RangeError unless `batchSize` is a whole number from 1 on */
  constructor(options: PredictorOptions<Sample, Output, Result>) {
    requireOptions("Predictor", options, {
      runtime: "gpuRuntime(device) or cpuRuntime()",
      model: "a module",
      forward: "a function that records the results of some samples",
      batchSize: "a whole number from 1 on",
    });
    requireKinds("Predictor", options, kinds);
    const { batchSize, precision, device } = options;
    if (!Number.isSafeInteger(batchSize) || batchSize < 1)
      throw new RangeError(`batchSize is ${said(batchSize)}: it must be a whole number from 1 on`);
    this.#options = options;
    this.#precision = precision === undefined ? undefined : recipeFor(precision);
    this.#phases = new PhaseMeter(device);
    this.#clock = DeviceClock.on(device);
  }

  /**
   * Stores the model's parameters in float16 and computes in it; results are float32. Parameters that modules keep in float32
   * (batch norm's, a conditional random field's) stay. The float32 values of the others are lost: load them again to return
   * to float32.
   */
  half(): this {
    return this.use(inferenceIn("float16"));
  }

  /** As {@link half}, in bfloat16. */
  bfloat16(): this {
    return this.use(inferenceIn("bfloat16"));
  }

  /** Applies a recipe to the model and its computation: "float16" casts op by op and keeps float32 parameters. */
  use(precision: TrainingPrecision): this {
    this.#requireIdle("use()");
    const { model, device } = this.#options;
    const recipe = typeof precision === "string" ? recipeOf(precision) : precision;
    applyRecipe(model, recipe);
    this.#precision = recipe;
    this.#phases = new PhaseMeter(device);
    this.#clock = DeviceClock.on(device);
    this.#samples = 0;
    this.#batches = 0;
    this.#milliseconds = 0;
    return this;
  }

  /**
   * The results of samples, in their order. The samples of a batch are used together, so each needs memory of its own. Calls may overlap, as requests to a server do: each has batches of its own, which take turns.
   * @throws Error after `dispose()`. TypeError where the iterable has written a sample over another one of its batch.
   * RangeError where `read` gives another number of results. The errors of `forward`, `read` and samples.
   */
  async predict(samples: Iterable<Sample> | AsyncIterable<Sample>): Promise<Result[]> {
    const results: Result[] = [];
    for await (const result of this.stream(samples)) results.push(result);
    return results;
  }

  /** As {@link predict}, one by one: for an endless stream of samples, only the current batches are in memory. */
  async *stream(samples: Iterable<Sample> | AsyncIterable<Sample>): AsyncGenerator<Result> {
    this.#requireUsable("predict()");
    if (this.#streams++ === 0) this.#goOn = evaluationMode(this.#options.model);
    try {
      let underWay: Promise<readonly Result[]> | undefined;
      for await (const batch of batched(samples, this.#options.batchSize)) {
        const results = this.#read(batch, await this.#inTurn(() => this.#run(batch)));
        // A failure is thrown in its turn; until then it must not count as unhandled.
        results.catch(() => {});
        const before = underWay;
        underWay = results;
        if (before) yield* await this.#timed(before);
      }
      if (underWay) yield* await this.#timed(underWay);
    } finally {
      if (--this.#streams === 0) this.#goOn?.();
    }
  }

  /** The cost of predictions. Waits for the device. */
  async usage(): Promise<PredictorUsage> {
    const { model } = this.#options;
    const { submit } = this.#phases.costs();
    return {
      samples: this.#samples,
      batches: this.#batches,
      milliseconds: this.#milliseconds,
      deviceMsPerBatch: await this.#clock?.median(),
      parameterBytes: bytesOf(model),
      batchBytes: this.#batchBytes,
      peakBytes: submit?.peakBytes ?? 0,
    };
  }

  /** Releases the memory of batches and the device's pool; parameters stay. The next batch is planned and allocated anew. */
  emptyCache(): void {
    this.#requireIdle("emptyCache()");
    this.#options.runtime.emptyCache();
  }

  /**
   * Releases all memory except the parameters, which belong to the model. The predictor can no longer be used.
   * @throws Error while samples are predicted
   */
  dispose(): void {
    if (this.#isDisposed) return;
    this.#requireIdle("dispose()");
    this.#options.runtime.emptyCache();
    this.#isDisposed = true;
  }

  [Symbol.dispose](): void {
    this.dispose();
  }

  async #run(batch: readonly Sample[]): Promise<Output> {
    const { runtime, forward } = this.#options;
    const record = (): Output =>
      noGrad(() =>
        this.#precision
          ? inPrecision(this.#precision, () => atOnce("forward()", forward(batch)) as never)
          : atOnce("forward()", forward(batch)),
      );
    const endSample = this.#clock?.begin();
    const output = await this.#timed(
      this.#phases.step((recording) => runtime.step(recording(record) as () => never)),
    );
    endSample?.();
    this.#batchBytes = runtime.lastPlan?.statistics.peakBytes ?? 0;
    return output;
  }

  async #read(batch: readonly Sample[], output: Output): Promise<readonly Result[]> {
    const { read } = this.#options;
    try {
      const results = await (read ? read(output, batch) : rowsOf(output, batch.length));
      if (results.length !== batch.length)
        throw new RangeError(
          `read() gave ${results.length} results of ${batch.length} samples: it must give one for each`,
        );
      this.#samples += batch.length;
      this.#batches++;
      return results as readonly Result[];
    } finally {
      for (const tensor of tensorsIn(output)) tensor.dispose();
    }
  }

  /** Does work after that of earlier calls. */
  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const result = this.#turn.then(work);
    this.#turn = result.then(
      () => {},
      () => {},
    );
    return result;
  }

  /** Counts the time of work; where several overlap, once. */
  async #timed<T>(work: Promise<T>): Promise<T> {
    if (this.#waits++ === 0) this.#waitingSince = performance.now();
    try {
      return await work;
    } finally {
      if (--this.#waits === 0) this.#milliseconds += performance.now() - this.#waitingSince;
    }
  }

  #requireIdle(what: string): void {
    this.#requireUsable(what);
    if (this.#streams > 0)
      throw new Error(
        `${what} while samples are predicted: await predict(), or end stream(), first`,
      );
  }

  #requireUsable(what: string): void {
    if (this.#isDisposed) throw new Error(`${what} after dispose(): make a new Predictor`);
  }
}

async function* batched<Sample>(
  samples: Iterable<Sample> | AsyncIterable<Sample>,
  size: number,
): AsyncGenerator<readonly Sample[]> {
  let batch: Sample[] = [];
  let fingerprints: Fingerprint[] = [];
  for await (const sample of samples) {
    batch.push(sample);
    if (size > 1) fingerprints.push(fingerprintOf(sample));
    if (batch.length < size) continue;
    requireIntact(fingerprints);
    yield batch;
    batch = [];
    fingerprints = [];
  }
  requireIntact(fingerprints);
  if (batch.length > 0) yield batch;
}

function requireIntact(samples: readonly Fingerprint[]): void {
  const overwritten = samples.findIndex(isOverwritten);
  if (overwritten >= 0)
    throw new TypeError(
      `sample ${overwritten + 1} of ${samples.length} of a batch has changed since it was taken: the samples of a batch are used together, so each needs memory of its own, or take batchSize: 1`,
    );
}

/** The elements of each sample of a tensor [samples, …]. */
async function rowsOf(output: unknown, samples: number): Promise<readonly Row[]> {
  if (!(output instanceof Tensor))
    throw new TypeError("forward() returned something else than a tensor: give `read` as well");
  if (output.shape[0] !== samples)
    throw new RangeError(
      `forward() returned a tensor of shape [${output.shape}] for ${samples} samples: its first dimension must be theirs, or give \`read\` as well`,
    );
  const values = (await output.toArray()) as Row;
  const size = values.length / samples;
  return Array.from({ length: samples }, (_, i) => values.subarray(i * size, (i + 1) * size));
}

/** The tensors in a result: itself, or in lists and plain objects. */
function* tensorsIn(value: unknown): Generator<Tensor> {
  if (value instanceof Tensor) yield value;
  else if (typeof value === "object" && value !== null)
    for (const each of Object.values(value)) yield* tensorsIn(each);
}

const bytesOf = (model: Module): number =>
  [...new Set([...model.namedVariables()].map(([, variable]) => variable))].reduce(
    (sum, { size, dtype }) => sum + bytesFor(dtype, size),
    0,
  );

const inferenceIn = (dtype: HalfDType): Recipe => ({
  ...recipeOf(`params=${dtype},compute=${dtype},output=float32`),
  keepBatchNormFloat32: true,
});
