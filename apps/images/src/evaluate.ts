import type { ResNet } from "@halfstep/models";
import type { Runtime, Tensor } from "@halfstep/tensor";
import {
  ConfusionMatrix,
  evaluate,
  inPrecision,
  type LabelSetCounts,
  type LabelSetFigures,
  type TrainingPrecision,
} from "@halfstep/trainer";
import type { Batch } from "./images.js";

/** The number of correctly classified images of a class. */
interface ClassScore {
  readonly name: string;
  readonly correct: number;
  readonly samples: number;
}

export interface Score {
  /** Share of images whose first guess is right: top-1. */
  readonly accuracy: number;
  /** Share of images with the right class among the first five guesses. Undefined where there are no more classes than guesses. */
  readonly top5Accuracy?: number;
  /** Mean cross-entropy in nats. */
  readonly loss: number;
  readonly samples: number;
  readonly classes: readonly ClassScore[];
}

/** A score, with the misclassified images. */
export interface ScoreWithMistakes {
  readonly score: Score;
  /** The first misclassified images, by their indices among the tested ones. */
  readonly mistakes: readonly Mistake[];
  /** What was taken for what. Undefined for so many classes that it would be too large. */
  readonly counts: ConfusionMatrix | undefined;
}

/** A score of images with any number of labels: micro and macro F1, and the share of images with all labels right. */
type LabelSetScore = LabelSetFigures & {
  /** Mean binary cross-entropy of a label in nats. */
  readonly loss: number;
  readonly samples: number;
};

/** A score of images with any number of labels, with those whose labels are not all right. */
export interface LabelSetsTested extends Pick<ScoreWithMistakes, "mistakes"> {
  readonly score: LabelSetScore;
  readonly counts: LabelSetCounts;
}

/** The result of a test. */
export type Tested = ScoreWithMistakes | LabelSetsTested;

export interface Mistake {
  readonly image: number;
  /** The predicted class, or labels. */
  readonly predictions: readonly number[];
}

/** Number of mistakes that are kept. */
export const mostMistakes = 12;

/** Guesses of `top5Accuracy`. */
const guesses = 5;

/** The most classes of a confusion matrix. */
const mostConfused = 2000;

/** A network with the options of its evaluation. */
interface Network {
  readonly runtime: Runtime;
  readonly precision: TrainingPrecision;
  /** In evaluation mode. */
  readonly model: ResNet;
}

export interface ScoreOptions extends Network {
  readonly batches: AsyncIterable<Batch>;
  /** Names of the classes. */
  readonly classes: readonly string[];
  /** Ends it early. */
  readonly signal?: AbortSignal | undefined;
}

/** Scores a network on images. While the device computes a batch, the next one is decoded. */
export async function scoreImages({
  classes,
  runtime,
  precision,
  model,
  batches,
  signal,
}: ScoreOptions): Promise<ScoreWithMistakes> {
  const correct = new Uint32Array(classes.length);
  const counts = new Uint32Array(classes.length);
  const mistakes: Mistake[] = [];
  const confusion = classes.length > mostConfused ? undefined : new ConfusionMatrix(classes);
  let tested = 0;
  const count = (counter: Uint32Array, label: number): void => {
    counter[label] = (counter[label] as number) + 1;
  };
  const { accuracy, topKAccuracy, loss, samples } = await evaluate<Batch>({
    ...{ runtime, precision, batches, signal },
    logits: (batch) => logitsOf({ runtime, precision, model }, batch),
    labels: ({ labels }) => labels,
    topK: guesses,
    onBatch: ({ labels }, predictions) => {
      confusion?.add(labels, predictions);
      for (const [i, label] of labels.entries()) {
        count(counts, label);
        const prediction = predictions[i] as number;
        if (prediction === label) count(correct, label);
        else if (mistakes.length < mostMistakes)
          mistakes.push({ image: tested + i, predictions: [prediction] });
      }
      tested += labels.length;
    },
  });
  const score = {
    accuracy,
    ...(classes.length > guesses && { top5Accuracy: topKAccuracy }),
    ...{ loss, samples },
    classes: classes.map((name, label) => ({
      ...{ name, correct: correct[label] as number, samples: counts[label] as number },
    })),
  };
  return { score, mistakes, counts: confusion };
}

/** Records the forward pass of a batch: logits [n, classes]. */
export const logitsOf = (
  { runtime, precision, model }: Network,
  { images, labels }: Batch,
): Tensor => {
  const channels = model.conv1.weight.shape[2] as number;
  const size = Math.sqrt(images.length / labels.length / channels);
  return inPrecision(precision, () =>
    model.forward(runtime.tensor(images, [labels.length, size, size, channels])),
  );
};

/** The accuracy of each class, or the F1 of each label, for people. */
export const classLines = ({ score, counts }: Tested): string => {
  if (!("classes" in score)) return labelLines(counts as LabelSetCounts);
  const { classes } = score;
  const width = Math.max(...classes.map(({ name }) => name.length));
  return classes
    .filter(({ samples }) => samples > 0)
    .map(
      ({ name, correct, samples }) =>
        `${name.padEnd(width)}  ${((100 * correct) / samples).toFixed(2).padStart(6)} %  ${correct} of ${samples}`,
    )
    .join("\n");
};

const labelLines = (counts: LabelSetCounts): string => {
  const width = Math.max(...counts.labels.map((label) => label.length));
  const percent = (share: number): string => `${(100 * share).toFixed(2).padStart(6)} %`;
  return counts
    .classScores()
    .filter(({ examples, predicted }) => examples + predicted > 0)
    .map(
      ({ label, f1, examples }) => `${label.padEnd(width)}  F1 ${percent(f1)}  ${examples} images`,
    )
    .join("\n");
};
