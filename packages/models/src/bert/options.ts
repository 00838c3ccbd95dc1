import { type Generator, type Initializer, Linear, normal, zeros } from "@halfstep/nn";
import type { Runtime } from "@halfstep/tensor/functional";
import type { ActivationName } from "../activation.js";

/** The options of transformers' BertConfig. The defaults are those of BERT base, uncased (Devlin et al. 2018). */
export interface BertOptions {
  /** Of the initial parameters, and of dropout. */
  readonly seed: number;
  /** Default 30,522. */
  readonly vocabSize?: number;
  /** Features of a token. Default 768. */
  readonly hiddenSize?: number;
  /** Default 12. */
  readonly numHiddenLayers?: number;
  /** Default 12. */
  readonly numAttentionHeads?: number;
  /** Default 3072. */
  readonly intermediateSize?: number;
  /** Between the two linear layers of each layer, and in the head of hidden words. Default "gelu", the exact one. */
  readonly hiddenAct?: ActivationName;
  /** Default 0.1. */
  readonly hiddenDropoutProb?: number;
  /** Default 0.1. */
  readonly attentionProbsDropoutProb?: number;
  /** Before a classifier of sequences or tokens. Default `hiddenDropoutProb`. */
  readonly classifierDropout?: number;
  /** Tokens of the longest sequence. Default 512. */
  readonly maxPositionEmbeddings?: number;
  /** Default 2. */
  readonly typeVocabSize?: number;
  /** Default 1e-12. */
  readonly layerNormEps?: number;
  /** Standard deviation of the initial weights. Default 0.02. */
  readonly initializerRange?: number;
  /** The padding token: its embedding starts as zeros, and gets no gradient as an input. Default 0. */
  readonly padTokenId?: number;
}

/** The names above, as constructors show them. */
export const bertOptionNames: string =
  "seed, vocabSize?, hiddenSize?, numHiddenLayers?, numAttentionHeads?, intermediateSize?, hiddenAct?, hiddenDropoutProb?, attentionProbsDropoutProb?, classifierDropout?, maxPositionEmbeddings?, typeVocabSize?, layerNormEps?, initializerRange?, padTokenId?";

/** Sizes and rates of a BERT, with the names of its `config.json`. */
export type BertConfig = Required<BertOptions>;

export const bertConfig = (options: BertOptions): BertConfig => ({
  vocabSize: 30_522,
  hiddenSize: 768,
  numHiddenLayers: 12,
  numAttentionHeads: 12,
  intermediateSize: 3072,
  hiddenAct: "gelu",
  hiddenDropoutProb: 0.1,
  attentionProbsDropoutProb: 0.1,
  classifierDropout: options.hiddenDropoutProb ?? 0.1,
  maxPositionEmbeddings: 512,
  typeVocabSize: 2,
  layerNormEps: 1e-12,
  initializerRange: 0.02,
  padTokenId: 0,
  ...options,
});

/** Shared by all parts of a model. */
export interface BertParts {
  readonly runtime: Runtime;
  readonly generator: Generator;
  readonly config: BertConfig;
}

export const bertWeights =
  ({ initializerRange }: BertConfig): Initializer =>
  (shape, generator) =>
    normal(shape, generator, 0, initializerRange);

export const bertLinear = (
  { runtime, generator, config }: BertParts,
  from: number,
  to: number,
): Linear =>
  new Linear(runtime, from, to, { generator, weightInit: bertWeights(config), biasInit: zeros });
