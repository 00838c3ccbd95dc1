import {
  BertForTokenClassification,
  type BertInputs,
  type BertTaggingOptions,
} from "@halfstep/models";
import { Embedding, normal } from "@halfstep/nn";
import type { Runtime, Tensor } from "@halfstep/tensor";

export interface WordTaggerOptions extends BertTaggingOptions {
  /** The number of word features; 0 for a BERT that uses only tokens. */
  readonly features: number;
}

export interface WordTaggerInputs extends BertInputs {
  /** uint32 [batch, length, features of a word]: those of the word that begins with a token, 0 for other tokens. */
  readonly wordFeatures?: Tensor | undefined;
}

/** BERT that tags tokens, and looks at features of words besides: the embeddings of them all are added up. */
export class WordTagger extends BertForTokenClassification {
  readonly features: Embedding | undefined;

  constructor(runtime: Runtime, { features, ...options }: WordTaggerOptions) {
    super(runtime, options);
    const { generator, config } = this.bert;
    this.features =
      features > 0
        ? new Embedding(runtime, features, config.hiddenSize, {
            generator,
            weightInit: (shape, draws) => normal(shape, draws, 0, config.initializerRange),
          })
        : undefined;
  }

  /**
   * @param inputIds uint32 [batch, length]
   * @returns scores [batch, length, tags]
   */
  override forward(inputIds: Tensor, { wordFeatures, ...inputs }: WordTaggerInputs = {}): Tensor {
    if (!this.features || !wordFeatures) return super.forward(inputIds, inputs);
    const tokenFeatures = this.features.forward(wordFeatures).sum(2);
    return super.forward(inputIds, { ...inputs, tokenFeatures });
  }
}
