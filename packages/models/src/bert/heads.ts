import {
  Dropout,
  LayerNorm,
  type Linear,
  Module,
  parameter,
  requireArguments,
  type TorchLayout,
} from "@halfstep/nn";
import type { Runtime, Tensor, Variable } from "@halfstep/tensor/functional";
import { indexSelect } from "@halfstep/tensor/functional";
import { activationOf } from "../activation.js";
import { CRF } from "../crf.js";
import { TiedHead } from "../tied-head.js";
import { type BertInputs, BertModel, type BertPooler } from "./model.js";
import { type BertOptions, type BertParts, bertLinear, bertOptionNames } from "./options.js";

abstract class BertWithHead extends Module {
  readonly bert: BertModel;

  constructor(runtime: Runtime, options: BertOptions, pooler: boolean) {
    super();
    this.bert = new BertModel(runtime, options, { pooler });
  }

  override get torchLayout(): TorchLayout {
    return { base: "bert" };
  }

  /** Two sequences of the token 1. */
  override exampleInputs(): readonly [Tensor] {
    return this.bert.exampleInputs();
  }
}

/** Inputs of a masked language model. */
export interface MaskedLMInputs extends BertInputs {
  /**
   * uint32 [places]: the tokens to predict, numbered through the whole batch, row by row. Scores of the vocabulary take most of the
   * time of a small model. Default: all.
   */
  readonly positions?: Tensor;
}

/** BERT that predicts the words at masked places; transformers' BertForMaskedLM. */
export class BertForMaskedLM extends BertWithHead {
  readonly cls: MaskedLMHead;

  constructor(runtime: Runtime, options: BertOptions) {
    requireArguments(`new BertForMaskedLM(runtime, { ${bertOptionNames} })`, runtime, options);
    super(runtime, options, false);
    this.cls = new MaskedLMHead(
      this.bert.parts(runtime),
      this.bert.embeddings.wordEmbeddings.weight,
    );
  }

  /**
   * @param inputIds uint32 [batch, length]
   * @returns logits [batch, length, vocabSize], or [places, vocabSize] where positions are given
   */
  forward(inputIds: Tensor, { positions, ...inputs }: MaskedLMInputs = {}): Tensor {
    const features = this.bert.forward(inputIds, inputs);
    const { hiddenSize } = this.bert.config;
    const wanted = positions
      ? indexSelect(features.reshape([-1, hiddenSize]), 0, positions)
      : features;
    return this.cls.forward(wanted);
  }
}

class MaskedLMHead extends Module {
  readonly predictions: Predictions;

  constructor(parts: BertParts, words: Variable) {
    super();
    this.predictions = new Predictions(parts, words);
  }

  /** Of the prediction of the next sentence, which is not made here. */
  override get torchLayout(): TorchLayout {
    return { ignored: ["seq_relationship.weight", "seq_relationship.bias"] };
  }

  forward(x: Tensor): Tensor {
    return this.predictions.forward(x);
  }
}

class Predictions extends Module {
  /** [vocabSize]; that of the decoder, too. */
  readonly bias: Variable;
  readonly transform: Transform;
  readonly decoder: TiedHead;

  constructor(parts: BertParts, words: Variable) {
    super();
    const { vocabSize } = parts.config;
    this.bias = parameter(parts.runtime, new Float32Array(vocabSize), [vocabSize], "bias");
    this.transform = new Transform(parts);
    this.decoder = new TiedHead(words, this.bias);
  }

  forward(x: Tensor): Tensor {
    return this.decoder.forward(this.transform.forward(x));
  }
}

class Transform extends Module {
  readonly dense: Linear;
  readonly layerNorm: LayerNorm;
  readonly #activation: (x: Tensor) => Tensor;

  constructor(parts: BertParts) {
    super();
    const { hiddenSize, layerNormEps, hiddenAct } = parts.config;
    this.#activation = activationOf(hiddenAct);
    this.dense = bertLinear(parts, hiddenSize, hiddenSize);
    this.layerNorm = new LayerNorm(parts.runtime, hiddenSize, { eps: layerNormEps });
  }

  override get torchLayout(): TorchLayout {
    return { names: { layerNorm: "LayerNorm" } };
  }

  forward(x: Tensor): Tensor {
    return this.layerNorm.forward(this.#activation(this.dense.forward(x)));
  }
}

/** Options of a BERT that labels. */
export interface BertLabelOptions extends BertOptions {
  /** Number of classes. Default 2. */
  readonly numLabels?: number;
}

/** BERT that classifies sequences by their first token; transformers' BertForSequenceClassification. */
export class BertForSequenceClassification extends BertWithHead {
  readonly dropout: Dropout;
  readonly classifier: Linear;

  constructor(runtime: Runtime, given: BertLabelOptions) {
    requireArguments(
      `new BertForSequenceClassification(runtime, { ${bertOptionNames}, numLabels? })`,
      runtime,
      given,
    );
    const { numLabels = 2, ...options } = given;
    super(runtime, options, true);
    const parts = this.bert.parts(runtime);
    const { classifierDropout: p, hiddenSize } = parts.config;
    this.dropout = new Dropout({ p, generator: parts.generator });
    this.classifier = bertLinear(parts, hiddenSize, numLabels);
  }

  /**
   * @param inputIds uint32 [batch, length]
   * @returns logits [batch, numLabels]
   */
  forward(inputIds: Tensor, inputs: BertInputs = {}): Tensor {
    const features = this.bert.forward(inputIds, inputs);
    const pooled = (this.bert.pooler as BertPooler).forward(features);
    return this.classifier.forward(this.dropout.forward(pooled));
  }
}

/** Options of a BERT that tags tokens. */
export interface BertTaggingOptions extends BertLabelOptions {
  /** Whether the tags of a sequence are scored together. Default false. */
  readonly crf?: boolean;
}

/**
 * BERT that tags every token; transformers' BertForTokenClassification. With a conditional random field, `forward` returns its
 * emissions: `model.crf.forward(emissions, tags, { mask })` is the loss, `model.crf.decode(emissions, { mask })` the tags.
 */
export class BertForTokenClassification extends BertWithHead {
  readonly dropout: Dropout;
  readonly classifier: Linear;
  readonly crf: CRF | undefined;

  constructor(runtime: Runtime, given: BertTaggingOptions) {
    requireArguments(
      `new BertForTokenClassification(runtime, { ${bertOptionNames}, numLabels?, crf? })`,
      runtime,
      given,
    );
    const { numLabels = 2, crf = false, ...options } = given;
    super(runtime, options, false);
    const parts = this.bert.parts(runtime);
    const { classifierDropout: p, hiddenSize } = parts.config;
    this.dropout = new Dropout({ p, generator: parts.generator });
    this.classifier = bertLinear(parts, hiddenSize, numLabels);
    this.crf = crf ? new CRF(runtime, numLabels, { generator: parts.generator }) : undefined;
  }

  /**
   * @param inputIds uint32 [batch, length]
   * @returns logits [batch, length, numLabels]
   */
  forward(inputIds: Tensor, inputs: BertInputs = {}): Tensor {
    return this.classifier.forward(this.dropout.forward(this.bert.forward(inputIds, inputs)));
  }
}
