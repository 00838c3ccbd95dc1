import { type Normalization, normalizedBytes } from "@halfstep/data";
import type { Device } from "@halfstep/device";
import { type Runtime, sigmoid, softmax, type Tensor } from "@halfstep/tensor";
import { Predictor, type PredictorUsage } from "@halfstep/trainer";
import type { View } from "./data.js";
import { centerView } from "./decode.js";
import type { OpenedNetwork } from "./saved-network.js";

/** The likeliest classes of an image, or its labels. */
export interface Prediction {
  readonly file: string;
  /** The likeliest first, at most five; or all labels with a probability above a half. */
  readonly classes: readonly { readonly name: string; readonly probability: number }[];
}

export interface PredictOptions {
  readonly runtime: Runtime;
  readonly device: Device | undefined;
  readonly batchSize: number;
  /** Compute in float16, with parameters in float16. */
  readonly half: boolean;
}

/**
 * What a network takes image files for, and what that has cost.
 * @throws DataError naming the file that cannot be decoded
 */
export async function predictImages(
  { model, view, recipe }: OpenedNetwork,
  files: readonly string[],
  { runtime, device, batchSize, half }: PredictOptions,
): Promise<{ readonly predictions: readonly Prediction[]; readonly usage: PredictorUsage }> {
  const { size, channels } = view;
  using predictor = new Predictor<Float32Array>({
    ...{ runtime, device, model, batchSize, precision: recipe },
    forward: (images): Tensor => {
      const pixels = new Float32Array(images.length * size ** 2 * channels);
      for (const [i, image] of images.entries()) pixels.set(image, i * image.length);
      const logits = model.forward(runtime.tensor(pixels, [images.length, size, size, channels]));
      return view.multiLabel ? sigmoid(logits) : softmax(logits);
    },
  });
  if (half) predictor.half();
  const probabilities = await predictor.predict(imagesOf(files, view));
  return {
    predictions: probabilities.map((row, i) => ({
      file: files[i] as string,
      classes: view.multiLabel ? told(row, view.classes) : likeliest(row, view.classes),
    })),
    usage: await predictor.usage(),
  };
}

async function* imagesOf(files: readonly string[], view: View): AsyncGenerator<Float32Array> {
  const { mean, std, channels } = view;
  const numbers = normalizedBytes({ mean, std } satisfies Normalization, channels);
  for (const file of files) {
    const bytes = await centerView(file, view);
    yield Float32Array.from(bytes, (byte, i) => numbers[256 * (i % channels) + byte] as number);
  }
}

const sorted = (row: ArrayLike<number>, classes: readonly string[]): Prediction["classes"] =>
  Array.from(row, (probability, i) => ({ name: classes[i] as string, probability })).sort(
    (a, b) => b.probability - a.probability,
  );

const likeliest = (row: ArrayLike<number>, classes: readonly string[]): Prediction["classes"] =>
  sorted(row, classes).slice(0, 5);

const told = (row: ArrayLike<number>, classes: readonly string[]): Prediction["classes"] =>
  sorted(row, classes).filter(({ probability }) => probability > 0.5);
