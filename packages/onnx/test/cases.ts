import { BertForSequenceClassification, DigitsCnn, GPT, Mlp, ResNet, UNet } from "@halfstep/models";
import {
  AvgPool2d,
  type BatchNorm,
  BatchNorm1d,
  BatchNorm3d,
  Conv2d,
  Embedding,
  Generator,
  GRU,
  Linear,
  LSTM,
  MaxPool2d,
  Module,
  Sequential,
} from "@halfstep/nn";
import { cpuRuntime, type Runtime, type Tensor } from "@halfstep/tensor";
import type { OnnxOptions } from "../src/index.js";

/** Where all models of the cases are. */
export const runtime: Runtime = cpuRuntime();

export const waves = (shape: readonly number[]): Tensor => {
  const size = shape.reduce((a, b) => a * b, 1);
  return runtime.tensor(
    Float32Array.from({ length: size }, (_, i) => Math.sin(i + 1)),
    shape,
  );
};
const tokens = (shape: readonly number[], below: number): Tensor => {
  const size = shape.reduce((a, b) => a * b, 1);
  return runtime.tensor(
    Uint32Array.from({ length: size }, (_, i) => (7 * i + 3) % below),
    shape,
  );
};

/** A model, an example for its export, and other inputs for which its results are compared. */
export interface Case {
  readonly model: Module;
  readonly example: readonly unknown[];
  readonly given: readonly unknown[];
  readonly feeds: Readonly<Record<string, Tensor>>;
  readonly options?: OnnxOptions;
}

const ofImages = (model: Module, size: number, channels: number): Case => {
  const images = waves([3, size, size, channels]);
  return {
    model,
    example: [runtime.zeros([1, size, size, channels])],
    given: [images],
    feeds: { input: images },
  };
};

/** A batch norm whose statistics are not those of its beginning. */
function ofNorm(norm: BatchNorm, ...sizes: readonly number[]): Case {
  norm.forward(waves([4, ...sizes]));
  const given = waves([3, ...sizes]);
  return {
    ...{ model: norm, example: [runtime.zeros([1, ...sizes])], given: [given] },
    feeds: { input: given },
  };
}

const resnet = (shortcut: "projection" | "padding", stem: "cifar" | "imagenet"): Module =>
  new ResNet(runtime, { seed: 3, layers: [1, 1, 1], width: 4, classes: 5, shortcut, stem });

/** Pools whose last windows reach past the padding, or whose means leave it out. */
const pools = (): Module =>
  new Sequential(
    new Conv2d(runtime, 2, 3, { kernelSize: 1, generator: new Generator(4) }),
    new MaxPool2d({ kernelSize: 2, ceilMode: true }),
    new AvgPool2d({ kernelSize: 3, stride: 2, padding: 1, ceilMode: true, countIncludePad: false }),
  );

/** The scores of each token after a recurrent layer. */
class Recurrent extends Module {
  readonly embedding: Embedding;
  readonly layers: LSTM | GRU;
  readonly head: Linear;

  constructor(generator: Generator, layers: LSTM | GRU, features: number) {
    super();
    this.embedding = new Embedding(runtime, 11, layers.inputSize, { generator });
    this.layers = layers;
    this.head = new Linear(runtime, features, 5, { generator });
  }

  forward(tokens: Tensor): Tensor {
    return this.head.forward(this.layers.forward(this.embedding.forward(tokens)).output);
  }
}

const recurrent = (make: (generator: Generator) => LSTM | GRU, features: number): Case => {
  const generator = new Generator(6);
  const input = tokens([3, 7], 11);
  return {
    model: new Recurrent(generator, make(generator), features),
    example: [tokens([2, 5], 11)],
    given: [input],
    feeds: { input },
    options: { axes: { input: { 0: "batch", 1: "length" } } },
  };
};

const unet = (bilinear: boolean): Case => {
  const input = waves([1, 16, 48, 3]);
  return {
    model: new UNet(runtime, { seed: 7, width: 2, classes: 3, bilinear }),
    example: [runtime.zeros([1, 32, 32, 3])],
    given: [input],
    feeds: { input },
    options: {
      axes: { input: { 0: "batch", 1: "height", 2: "width" } },
      multiples: { height: 16, width: 16 },
    },
  };
};

/** The reference models, small. */
export const cases: Readonly<Record<string, () => Case>> = {
  "batch norm of vectors": () => ofNorm(new BatchNorm1d(runtime, 5), 5),
  "batch norm of sequences, not affine": () =>
    ofNorm(new BatchNorm1d(runtime, 5, { affine: false }), 6, 5),
  "batch norm of volumes": () => ofNorm(new BatchNorm3d(runtime, 2), 3, 4, 5, 2),
  MLP() {
    const x = waves([3, 8]);
    return {
      model: new Mlp(runtime, { sizes: [8, 16, 4], seed: 1 }),
      example: [runtime.zeros([1, 8])],
      given: [x],
      feeds: { input: x },
    };
  },
  CNN: () => ofImages(new DigitsCnn(runtime, { seed: 2 }), 28, 1),
  pools: () => ofImages(pools(), 9, 2),
  "ResNet with padded shortcuts": () => ofImages(resnet("padding", "cifar"), 12, 3),
  "ResNet with projections": () => ofImages(resnet("projection", "imagenet"), 33, 3),
  "BERT classifier"() {
    const model = new BertForSequenceClassification(runtime, {
      ...{ seed: 4, vocabSize: 50, hiddenSize: 16, numHiddenLayers: 2, numAttentionHeads: 2 },
      ...{ intermediateSize: 24, maxPositionEmbeddings: 12, numLabels: 3 },
    });
    const inputIds = tokens([3, 7], 50);
    const attentionMask = runtime.tensor(
      Uint32Array.from({ length: 21 }, (_, i) => (i % 7 < 3 + Math.floor(i / 7) ? 1 : 0)),
      [3, 7],
    );
    const of = (x: Tensor): readonly unknown[] => [x, { attentionMask: x, tokenTypeIds: x }];
    const tokenTypeIds = tokens([3, 7], 2);
    const axes = { 0: "batch", 1: "length" };
    return {
      model,
      example: of(tokens([2, 5], 2)),
      given: [inputIds, { attentionMask, tokenTypeIds }],
      feeds: { input_ids: inputIds, attention_mask: attentionMask, token_type_ids: tokenTypeIds },
      options: {
        inputNames: ["input_ids", "attention_mask", "token_type_ids"],
        outputNames: ["logits"],
        axes: { input_ids: axes, attention_mask: axes, token_type_ids: axes },
      },
    };
  },
  "GPT-2"() {
    const model = new GPT(runtime, {
      ...{ seed: 5, vocabSize: 40, blockSize: 9, nLayer: 2, nHead: 2, nEmbd: 16, dropout: 0.1 },
    });
    const given = tokens([3, 9], 40);
    return {
      model,
      example: [tokens([1, 4], 40)],
      given: [given],
      feeds: { input_ids: given },
      options: { inputNames: ["input_ids"], axes: { input_ids: { 0: "batch", 1: "length" } } },
    };
  },
  "U-Net": () => unet(false),
  "U-Net by interpolation": () => unet(true),
  LSTM: () =>
    recurrent(
      (generator) => new LSTM(runtime, 6, 5, { generator, numLayers: 2, batchFirst: true }),
      5,
    ),
  "GRU in both directions": () =>
    recurrent(
      (generator) =>
        new GRU(runtime, 4, 8, { generator, bidirectional: true, bias: false, batchFirst: true }),
      16,
    ),
};
