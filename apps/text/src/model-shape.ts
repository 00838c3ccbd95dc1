import type { BertOptions } from "@halfstep/models";

/** The sizes of a BERT, by the names of its `config.json`. */
export type ModelShape = Required<
  Pick<
    BertOptions,
    | "vocabSize"
    | "hiddenSize"
    | "numHiddenLayers"
    | "numAttentionHeads"
    | "intermediateSize"
    | "hiddenAct"
    | "maxPositionEmbeddings"
    | "hiddenDropoutProb"
    | "attentionProbsDropoutProb"
    | "typeVocabSize"
    | "layerNormEps"
    | "initializerRange"
    | "padTokenId"
  >
>;

export interface SmallShape {
  readonly vocabulary: readonly string[];
  readonly hiddenSize: number;
  readonly layers: number;
  readonly heads: number;
  readonly maxLength: number;
  readonly dropout: number;
}

/** A model that is small enough to learn from a small text. All other options are those of BERT base. */
export const smallShape = ({
  vocabulary,
  hiddenSize,
  layers,
  heads,
  maxLength,
  dropout,
}: SmallShape): ModelShape => ({
  vocabSize: vocabulary.length,
  hiddenSize,
  numHiddenLayers: layers,
  numAttentionHeads: heads,
  intermediateSize: 2 * hiddenSize,
  hiddenAct: "gelu",
  maxPositionEmbeddings: maxLength,
  hiddenDropoutProb: dropout,
  attentionProbsDropoutProb: dropout,
  typeVocabSize: 2,
  layerNormEps: 1e-12,
  // BERT's 0.02 is made for 768 features: √(0.02² · 768 / hiddenSize) keeps the sums as large.
  initializerRange: 0.02 * Math.sqrt(768 / hiddenSize),
  padTokenId: vocabulary.indexOf("[PAD]"),
});
