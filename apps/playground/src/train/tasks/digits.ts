import {
  gatherImages,
  gatherLabels,
  type ImageSet,
  mnistNormalization,
  shuffledBatches,
} from "@halfstep/data";
import { DigitsCnn, Mlp } from "@halfstep/models";
import type { Module } from "@halfstep/nn";
import { argmax, crossEntropy, noGrad, softmax, type Tensor } from "@halfstep/tensor";
import type { Task, TaskParts } from "./task.js";

/** Handwritten digits of MNIST: 28 × 28 pixels each. */
export interface Digits {
  readonly train: ImageSet;
  readonly test: ImageSet;
}

const batchSize = 64;
const side = 28;

interface DigitsOptions {
  /** Default: on a CPU. */
  readonly isSmall?: boolean;
}

/** A network that reads digits: a convolutional one, or on a CPU a small perceptron, which is faster there. */
export function digitsTask(
  { runtime, config, inPrecision }: TaskParts,
  { train, test }: Digits,
  { isSmall = runtime.kind === "cpu" }: DigitsOptions = {},
): Task {
  const model: Module & { forward(x: Tensor): Tensor } = isSmall
    ? new Mlp(runtime, { sizes: [side * side, 64, 10], seed: config.seed })
    : new DigitsCnn(runtime, { seed: config.seed });
  const shape = isSmall ? [side * side] : [side, side, 1];
  const perEpoch = Math.floor(train.count / batchSize);
  let epoch = -1;
  let batches: readonly Uint32Array[] = [];
  const batchOf = (step: number): Uint32Array => {
    const wanted = Math.floor(step / perEpoch);
    if (wanted !== epoch) {
      epoch = wanted;
      batches = [...shuffledBatches({ count: train.count, batchSize, seed: config.seed + wanted })];
    }
    return batches[step % perEpoch] as Uint32Array;
  };
  const logitsOf = (pixels: Float32Array, count: number): Tensor => {
    const gained = config.gain === 0 ? pixels : pixels.map((value) => value * 2 ** config.gain);
    return inPrecision(() => model.forward(runtime.tensor(gained, [count, ...shape])));
  };
  /** Runs a forward pass of an evaluation: batch norm uses its running statistics. */
  const evaluated = async (record: () => Tensor): Promise<Tensor> => {
    model.eval();
    try {
      return await runtime.step(() => noGrad(record));
    } finally {
      model.train();
    }
  };
  return {
    model,
    loss: (step) => {
      const batch = batchOf(step);
      const logits = logitsOf(gatherImages(train, batch, mnistNormalization), batch.length);
      return inPrecision(() => crossEntropy(logits, runtime.tensor(gatherLabels(train, batch))));
    },
    view: {
      kind: "images",
      async accuracy() {
        const all = Uint32Array.from({ length: test.count }, (_, i) => i);
        const images = gatherImages(test, all, mnistNormalization);
        using answers = await evaluated(() => argmax(logitsOf(images, all.length), -1));
        const labels = gatherLabels(test, all);
        const right = (await answers.toArray()).filter((answer, i) => answer === labels[i]);
        return right.length / all.length;
      },
      async classify(pixels) {
        const { mean, std } = mnistNormalization as { mean: number; std: number };
        const image = pixels.map((value) => (value - mean) / std);
        using probabilities = await evaluated(() => softmax(logitsOf(image, 1).to("float32"), -1));
        return Float32Array.from(await probabilities.toArray());
      },
    },
  };
}
