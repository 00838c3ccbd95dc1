import type { CompileProgress } from "@halfstep/device";
import { argmax, crossEntropy, noGrad, type Runtime, type Tensor, topK } from "@halfstep/tensor";
import { type Batches, BatchSource } from "./batch-source.js";
import { type Kinds, requireKinds, said } from "./option-kinds.js";
import { inPrecision, type TrainingPrecision } from "./precision.js";
import { atOnce, Reports } from "./reports.js";
import { requireOptions } from "./required-options.js";
import { aborted } from "./until-aborted.js";

/** Options of evaluating a model. */
export interface EvaluateOptions<Batch> {
  readonly runtime: Runtime;
  readonly precision: TrainingPrecision;
  /** Records the logits [batch, classes] of a batch, by a model in evaluation mode: see {@link evaluate}. */
  readonly logits: (batch: Batch) => Tensor;
  /** The class of each sample of a batch. */
  readonly labels: (batch: Batch) => Uint32Array;
  /** May be asynchronous, such as batches from files: the next one is requested while the device still computes. */
  readonly batches: Batches<Batch>;
  /** Number of guesses for each sample in `topKAccuracy`, at most all classes. Default: not computed. */
  readonly topK?: number | undefined;
  /**
   * Called for each batch with the likeliest class of each sample, for custom metrics. The next batch is made before: where they share an
   * array, as with `gatherImages(…, into)`, it has the numbers of the next one. A promise that it returns is awaited before the next call.
   */
  readonly onBatch?: ((batch: Batch, predictions: Uint32Array) => void) | undefined;
  /** Called while a batch waits for programs that it is the first to need. Promises that it returns are awaited at the end. */
  readonly onCompile?: ((progress: CompileProgress) => void) | undefined;
  /**
   * Ends the evaluation after the current batch, with the figures so far. A wait for `batches` ends as well, and errors of the loader do not
   * count after the signal. Where no batch had come, `samples` is 0 and the figures are NaN.
   */
  readonly signal?: AbortSignal | undefined;
}

/** The result of an evaluation. */
export interface Evaluation {
  /** Share of samples whose largest logit is that of their class. */
  readonly accuracy: number;
  /** Mean cross-entropy in nats. */
  readonly loss: number;
  readonly samples: number;
  /** True where `signal` ended it before the last batch; absent otherwise. */
  readonly isAborted?: boolean;
}

/** The result with the option `topK`. */
export interface TopKEvaluation extends Evaluation {
  /** Share of samples whose class has one of the `topK` largest logits; ties go to the first classes. */
  readonly topKAccuracy: number;
}

/**
 * Computes accuracy and loss of a classifier, in its training precision. It leaves the mode of the model as it is: the caller puts it into
 * evaluation mode by `model.eval()`. `evaluateEvery()` with the option `model` does so, and restores the mode afterwards.
 * @throws RangeError where there is no sample, and unless `topK` is a positive integer
 */
export function evaluate<Batch>(
  options: EvaluateOptions<Batch> & { readonly topK: number },
): Promise<TopKEvaluation>;
export function evaluate<Batch>(options: EvaluateOptions<Batch>): Promise<Evaluation>;
export async function evaluate<Batch>(
  options: EvaluateOptions<Batch>,
): Promise<Evaluation | TopKEvaluation> {
  requireOptions("evaluate", options, {
    runtime: "gpuRuntime(device) or cpuRuntime()",
    precision: '"float32", "float16", "bfloat16" or a recipe',
    logits: "a function that records the logits of a batch",
    labels: "a function that gives the classes of a batch",
    batches: "batches",
  });
  requireKinds("evaluate()", options, kinds);
  const { runtime, precision, topK: guesses, signal, onCompile } = options;
  if (guesses !== undefined && !(Number.isSafeInteger(guesses) && guesses >= 1))
    throw new RangeError(`topK is ${said(guesses)}: it must be a whole number from 1 on`);
  let first = 0;
  let among = 0;
  let loss = 0;
  let samples = 0;
  let hasBegun = false;
  let isAborted = false;
  let underWay: Promise<void> = Promise.resolve();
  const reports = new Reports();
  const evaluateNext = async (batch: Batch): Promise<void> => {
    // They are compared while the next batch is made, perhaps in the same array.
    const labels = atOnce("labels()", options.labels(batch)).slice();
    const record = () => {
      const logits = inPrecision(precision, () => atOnce("logits()", options.logits(batch)));
      return {
        best: bestOf(logits, guesses),
        losses: crossEntropy(logits, runtime.tensor(labels), { reduction: "none" }),
      };
    };
    const results = await runtime.step(() => noGrad(record), {
      onCompile: onCompile && ((progress) => reports.add(onCompile(progress))),
    });
    await underWay;
    underWay = (async () => {
      using best = results.best;
      using losses = results.losses;
      const [places, nats] = await Promise.all([best.toArray(), losses.toArray()]);
      const width = guesses === undefined ? 1 : (best.shape.at(-1) as number);
      const predictions = Uint32Array.from(labels, (_, i) => places[i * width] as number);
      for (const [i, label] of labels.entries()) {
        const place = places.subarray(i * width, (i + 1) * width).indexOf(label);
        if (place === 0) first++;
        if (place >= 0) among++;
        loss += nats[i] as number;
      }
      samples += labels.length;
      await options.onBatch?.(batch, predictions);
    })();
    // The next await throws a failure; until then it must not count as unhandled.
    underWay.catch(() => {});
  };
  const source = new BatchSource(options.batches, signal);
  try {
    for (;;) {
      const taken = await source.take(1);
      // The first batch is always evaluated.
      isAborted = taken === aborted || (taken.length > 0 && hasBegun && signal?.aborted === true);
      if (taken === aborted || taken.length === 0 || isAborted) break;
      hasBegun = true;
      await evaluateNext(await (taken[0] as Batch));
    }
  } finally {
    await source.close();
  }
  await underWay;
  await reports.settled();
  if (samples === 0 && !isAborted)
    throw new RangeError(
      "evaluate() got no samples: its batches may be an iterator that is used up",
    );
  return {
    accuracy: first / samples,
    ...(guesses !== undefined && { topKAccuracy: among / samples }),
    loss: loss / samples,
    samples,
    ...(isAborted && { isAborted }),
  };
}

const kinds: Kinds<EvaluateOptions<never>> = {
  ...{ runtime: "any", precision: "any", logits: "function", labels: "function", batches: "any" },
  ...{ topK: "any", onBatch: "function", onCompile: "function", signal: "any" },
};

/** The classes with the largest logits, the largest first. */
const bestOf = (logits: Tensor, guesses: number | undefined): Tensor =>
  guesses === undefined
    ? argmax(logits, -1)
    : topK(logits, Math.min(guesses, logits.shape.at(-1) as number)).indices;
