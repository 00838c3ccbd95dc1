import { argmax, crossEntropy, noGrad, type Runtime, type Tensor } from "@halfstep/tensor";
import { inPrecision, type TrainingPrecision } from "./precision.js";

export interface EvaluateOptions<Batch> {
  readonly runtime: Runtime;
  readonly precision: TrainingPrecision;
  /** Records the logits [batch, classes] of a batch. The model is in evaluation mode. */
  readonly logits: (batch: Batch) => Tensor;
  /** The class of each sample of a batch. */
  readonly labels: (batch: Batch) => Uint32Array;
  readonly batches: Iterable<Batch>;
}

export interface Evaluation {
  /** Share of samples whose largest logit is that of their class. */
  readonly accuracy: number;
  /** Mean cross-entropy in nats. */
  readonly loss: number;
  readonly samples: number;
}

/**
 * Accuracy and loss of a classifier, in the precision that it is trained in.
 * @throws RangeError where there is no sample
 */
export async function evaluate<Batch>(options: EvaluateOptions<Batch>): Promise<Evaluation> {
  const { runtime, precision } = options;
  let correct = 0;
  let loss = 0;
  let samples = 0;
  let underWay: Promise<void> = Promise.resolve();
  for (const batch of options.batches) {
    const labels = options.labels(batch);
    const results = await runtime.step(() =>
      noGrad(() => {
        const logits = inPrecision(precision, () => options.logits(batch));
        return {
          predictions: argmax([logits], null),
          losses: crossEntropy(logits, runtime.tensor(labels), { reduction: "none" }),
        };
      }),
    );
    await underWay;
    underWay = (async () => {
      const [predictions, losses] = await Promise.all([
        results.predictions.toArray(),
        results.losses.toArray(),
      ]);
      results.predictions.dispose();
      results.losses.dispose();
      for (const [i, label] of labels.entries()) {
        if (predictions[i] === label) correct++;
        loss += losses[i] as number;
      }
      samples += labels.length;
    })();
    // A failure is thrown by the next await; until then it must not count as unhandled.
    underWay.catch(() => {});
  }
  await underWay;
  if (samples === 0)
    throw new RangeError(
      "evaluate() got no samples: its batches may be an iterator that is used up",
    );
  return { accuracy: correct / samples, loss: loss / samples, samples };
}
