import type { ResNet } from "@halfstep/models";
import { crossEntropy, noGrad, type Runtime, type Tensor, topK } from "@halfstep/tensor";
import { inPrecision, type TrainingPrecision } from "@halfstep/trainer";
import type { Batch } from "./images.js";

/** How many of the images of a class got its name. */
interface ClassScore {
  readonly name: string;
  readonly correct: number;
  readonly samples: number;
}

export interface Score {
  /** Share of images whose first guess is right: top-1. */
  readonly accuracy: number;
  /** Share of images of whose first five guesses one is right. */
  readonly top5Accuracy: number;
  /** Mean cross-entropy in nats. */
  readonly loss: number;
  readonly samples: number;
  readonly classes: readonly ClassScore[];
}

export interface ScoreOptions {
  readonly runtime: Runtime;
  readonly precision: TrainingPrecision;
  /** In evaluation mode. */
  readonly model: ResNet;
  readonly batches: AsyncIterable<Batch>;
  /** Names of the classes. */
  readonly classes: readonly string[];
  /** Ends it early. */
  readonly signal?: AbortSignal | undefined;
}

/** What a network makes of images. While the device looks at a batch the next one is decoded. */
export async function scoreImages(options: ScoreOptions): Promise<Score> {
  const { runtime, classes } = options;
  const guesses = Math.min(5, classes.length);
  const correct = new Uint32Array(classes.length);
  const counts = new Uint32Array(classes.length);
  let inFive = 0;
  let loss = 0;
  let underWay: Promise<void> = Promise.resolve();
  for await (const { images, labels } of options.batches) {
    const results = await runtime.step(() =>
      noGrad(() => {
        const logits = logitsOf(options, { images, labels });
        return {
          best: topK(logits, guesses).indices,
          losses: crossEntropy(logits, runtime.tensor(labels), { reduction: "none" }),
        };
      }),
    );
    await underWay;
    underWay = (async () => {
      using best = results.best;
      using losses = results.losses;
      const [places, nats] = await Promise.all([best.toArray(), losses.toArray()]);
      for (const [i, label] of labels.entries()) {
        const place = places.subarray(i * guesses, (i + 1) * guesses).indexOf(label);
        counts[label] = (counts[label] as number) + 1;
        if (place === 0) correct[label] = (correct[label] as number) + 1;
        if (place >= 0) inFive++;
        loss += nats[i] as number;
      }
    })();
    // A failure is thrown by the next await; until then it must not count as unhandled.
    underWay.catch(() => {});
    if (options.signal?.aborted) break;
  }
  await underWay;
  const sum = (values: Uint32Array): number => values.reduce((total, value) => total + value, 0);
  const samples = sum(counts);
  return {
    accuracy: sum(correct) / samples,
    top5Accuracy: inFive / samples,
    loss: loss / samples,
    samples,
    classes: classes.map((name, label) => ({
      ...{ name, correct: correct[label] as number, samples: counts[label] as number },
    })),
  };
}

/** Records the forward pass of a batch: logits [n, classes]. */
export const logitsOf = (
  { runtime, precision, model }: Pick<ScoreOptions, "runtime" | "precision" | "model">,
  { images, labels }: Batch,
): Tensor => {
  const channels = model.conv1.weight.shape[2] as number;
  const size = Math.sqrt(images.length / labels.length / channels);
  return inPrecision(precision, () =>
    model.forward(runtime.tensor(images, [labels.length, size, size, channels])),
  );
};

/** The accuracy of each class, for people. */
export const classLines = ({ classes }: Score): string => {
  const width = Math.max(...classes.map(({ name }) => name.length));
  return classes
    .filter(({ samples }) => samples > 0)
    .map(
      ({ name, correct, samples }) =>
        `${name.padEnd(width)}  ${((100 * correct) / samples).toFixed(2).padStart(6)} %  ${correct} of ${samples}`,
    )
    .join("\n");
};
