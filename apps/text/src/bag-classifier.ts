import {
  BertForSequenceClassification,
  type BertInputs,
  type BertLabelOptions,
} from "@halfstep/models";
import { Embedding } from "@halfstep/nn";
import type { Runtime, Tensor } from "@halfstep/tensor";

export interface BagClassifierOptions extends BertLabelOptions {
  /** The score of each token for each class, [vocabSize, numLabels], row by row. Default: a BERT without such scores. */
  readonly tokenScores?: Float32Array | undefined;
}

/**
 * BERT that classifies texts, plus the scores of a bag of words: a linear model of the tokens, independent of their order, that is
 * trained together with BERT ("wide and deep", Cheng et al. 2016).
 */
export class BagClassifier extends BertForSequenceClassification {
  /** [vocabSize, numLabels] */
  readonly bag: Embedding | undefined;

  constructor(runtime: Runtime, { tokenScores, ...options }: BagClassifierOptions) {
    super(runtime, options);
    const { generator, config } = this.bert;
    const labels = this.classifier.weight.shape[0] as number;
    this.bag =
      tokenScores &&
      new Embedding(runtime, config.vocabSize, labels, {
        generator,
        paddingIndex: config.padTokenId,
        weightInit: () => tokenScores.slice(),
      });
  }

  /**
   * @param inputIds uint32 [batch, length]
   * @returns logits [batch, numLabels]
   */
  override forward(inputIds: Tensor, inputs: BertInputs = {}): Tensor {
    const scores = super.forward(inputIds, inputs);
    return this.bag ? scores.add(this.bag.forward(inputIds).sum(1)) : scores;
  }
}
