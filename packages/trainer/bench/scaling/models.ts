import { DigitsCnn, GPT, Mlp } from "@halfstep/models";
import type { Module } from "@halfstep/nn";
import { crossEntropy, type Runtime, type Tensor } from "@halfstep/tensor";
import type { ModelName } from "./tasks.js";

/** A model and its loss on one batch that always has the same samples. */
export interface Training {
  readonly model: Module;
  /** Called in a step. */
  loss(): Tensor;
}

/** Builds a model for batches of so many samples. */
export type Build = (runtime: Runtime, batch: number) => Training;

const features = (count: number): Float32Array =>
  Float32Array.from({ length: count }, (_, i) => Math.sin(i * 12.9898));

const numbersBelow = (limit: number, count: number): Uint32Array =>
  Uint32Array.from({ length: count }, (_, i) => i % limit);

/** Eight products of equal size, whose gradients are ready one after the other: 1.2 million parameters. */
const mlp: Build = (runtime, batch) => {
  const width = 384;
  const model = new Mlp(runtime, { sizes: [...Array<number>(8).fill(width), 10], seed: 1 });
  const [x, labels] = [features(batch * width), numbersBelow(10, batch)];
  return {
    model,
    loss: () =>
      crossEntropy(model.forward(runtime.tensor(x, [batch, width])), runtime.tensor(labels)),
  };
};

/** The network of the digits app. */
const cnn: Build = (runtime, batch) => {
  const model = new DigitsCnn(runtime, { seed: 1 });
  const [x, labels] = [features(batch * 28 * 28), numbersBelow(10, batch)];
  return {
    model,
    loss: () =>
      crossEntropy(model.forward(runtime.tensor(x, [batch, 28, 28, 1])), runtime.tensor(labels)),
  };
};

/** The network of the language-model app, on characters: 0.8 million parameters. */
const gpt: Build = (runtime, batch) => {
  const [vocabSize, length] = [96, 64];
  const model = new GPT(runtime, {
    ...{ vocabSize, blockSize: length, nLayer: 4, nHead: 4, nEmbd: 128, seed: 1 },
  });
  const tokens = numbersBelow(vocabSize, batch * length);
  const next = tokens.map((token) => (token + 1) % vocabSize);
  return {
    model,
    loss: () =>
      crossEntropy(
        model.forward(runtime.tensor(tokens, [batch, length])).reshape([-1, vocabSize]),
        runtime.tensor(next),
      ),
  };
};

export const builds: Readonly<Record<ModelName, Build>> = { mlp, cnn, gpt };
