import type { Module } from "@halfstep/nn";
import { crossEntropy, type Runtime, type Tensor } from "@halfstep/tensor";
import {
  BertForMaskedLM,
  BertForSequenceClassification,
  BertForTokenClassification,
  GPT,
  ResNet,
  resnet20,
  UNet,
} from "../src/index.js";

/** A small model and something that it can learn in a few steps. */
export interface Example {
  readonly name: string;
  /** Learning rate of plain gradient descent. */
  readonly lr: number;
  make(runtime: Runtime, seed: number): Trainable;
}

interface Trainable {
  readonly model: Module;
  loss(): Tensor;
  /** What the model makes of the inputs of the loss, the images among them cast. */
  output(images?: "float16"): Tensor;
}

const numbers = (count: number, modulus: number): Uint32Array =>
  Uint32Array.from({ length: count }, (_, i) => (i * i + (i >> 2)) % modulus);

const pattern = (count: number): Float32Array =>
  Float32Array.from({ length: count }, (_, i) => Math.sin(0.7 * i) + ((i % 7) - 3) / 4);

function classifier(
  runtime: Runtime,
  model: Module & { forward(x: Tensor): Tensor },
  size: number,
): Trainable {
  const x = runtime.tensor(pattern(4 * size * size * 3), [4, size, size, 3]);
  const labels = runtime.tensor(Uint32Array.of(0, 1, 2, 3));
  const output: Trainable["output"] = (dtype) => model.forward(dtype ? x.to(dtype) : x);
  return { model, output, loss: () => crossEntropy(output(), labels) };
}

const bertOptions = {
  vocabSize: 24,
  hiddenSize: 16,
  numHiddenLayers: 2,
  numAttentionHeads: 2,
  intermediateSize: 32,
  maxPositionEmbeddings: 12,
  initializerRange: 0.1,
};

function sequences(runtime: Runtime) {
  const [batch, length] = [4, 10];
  const shape = [batch, length] as const;
  const tokens = runtime.tensor(
    numbers(batch * length, 20).map((word) => word + 1),
    shape,
  );
  const ends = [10, 7, 10, 4];
  const attentionMask = runtime.tensor(
    Uint32Array.from({ length: batch * length }, (_, i) =>
      i % length < (ends[Math.floor(i / length)] as number) ? 1 : 0,
    ),
    shape,
  );
  return { tokens, attentionMask, batch, length, shape };
}

export const examples: readonly Example[] = [
  {
    name: "ResNet-20",
    lr: 0.1,
    make: (runtime, seed) => classifier(runtime, resnet20(runtime, { seed, width: 4 }), 12),
  },
  {
    name: "ResNet of bottlenecks",
    lr: 0.05,
    make: (runtime, seed) => {
      const model = new ResNet(runtime, {
        seed,
        layers: [1, 1, 1, 1],
        block: "bottleneck",
        width: 4,
        classes: 4,
      });
      return classifier(runtime, model, 32);
    },
  },
  {
    name: "GPT",
    lr: 1,
    make: (runtime, seed) => {
      const model = new GPT(runtime, {
        seed,
        vocabSize: 20,
        blockSize: 12,
        nLayer: 2,
        nHead: 2,
        nEmbd: 16,
        dropout: 0.05,
      });
      const words = numbers(44, 20);
      const [tokens, next] = [0, 1].map((from) =>
        runtime.tensor(
          Uint32Array.from(
            { length: 40 },
            (_, i) => words[Math.floor(i / 10) + i + from] as number,
          ),
          [4, 10],
        ),
      ) as [Tensor, Tensor];
      const output = (): Tensor => model.forward(tokens);
      return { model, output, loss: () => crossEntropy(output(), next) };
    },
  },
  {
    name: "BERT for masked words",
    lr: 0.2,
    make: (runtime, seed) => {
      const model = new BertForMaskedLM(runtime, { seed, ...bertOptions });
      const { tokens, attentionMask } = sequences(runtime);
      const positions = runtime.tensor(Uint32Array.of(2, 5, 11, 13, 24, 31));
      const words = runtime.tensor(Uint32Array.of(3, 4, 5, 6, 7, 8));
      const output = (): Tensor => model.forward(tokens, { attentionMask, positions });
      return { model, output, loss: () => crossEntropy(output(), words) };
    },
  },
  {
    name: "BERT for sequences",
    lr: 0.2,
    make: (runtime, seed) => {
      const model = new BertForSequenceClassification(runtime, {
        seed,
        ...bertOptions,
        numLabels: 3,
      });
      const { tokens, attentionMask, length, shape } = sequences(runtime);
      const tokenTypeIds = runtime.tensor(
        Uint32Array.from({ length: 40 }, (_, i) => (i % length < 3 ? 0 : 1)),
        shape,
      );
      const labels = runtime.tensor(Uint32Array.of(0, 1, 2, 1));
      const output = (): Tensor => model.forward(tokens, { attentionMask, tokenTypeIds });
      return { model, output, loss: () => crossEntropy(output(), labels) };
    },
  },
  {
    name: "BERT for tags, with a CRF",
    lr: 0.03,
    make: (runtime, seed) => {
      const model = new BertForTokenClassification(runtime, {
        seed,
        ...bertOptions,
        numLabels: 5,
        crf: true,
      });
      const { tokens, attentionMask: mask, shape } = sequences(runtime);
      const tags = runtime.tensor(numbers(40, 5), shape);
      const output = (): Tensor => model.forward(tokens, { attentionMask: mask });
      return {
        model,
        output,
        loss: () => (model.crf as NonNullable<typeof model.crf>).forward(output(), tags, { mask }),
      };
    },
  },
  ...[false, true].map(
    (bilinear): Example => ({
      name: bilinear ? "U-Net by interpolation" : "U-Net",
      lr: 0.3,
      make: (runtime, seed) => {
        const model = new UNet(runtime, { seed, channels: 1, classes: 3, width: 4, bilinear });
        const x = runtime.tensor(pattern(2 * 18 * 21), [2, 18, 21, 1]);
        const labels = runtime.tensor(
          Uint32Array.from({ length: 2 * 18 * 21 }, (_, i) => Math.floor((i % 21) / 7)),
          [2, 18, 21],
        );
        const output: Trainable["output"] = (dtype) => model.forward(dtype ? x.to(dtype) : x);
        return { model, output, loss: () => crossEntropy(output(), labels) };
      },
    }),
  ),
];
