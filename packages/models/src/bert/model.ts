import { DTypeError } from "@halfstep/autocast";
import {
  Dropout,
  Embedding,
  Generator,
  LayerNorm,
  type Linear,
  Module,
  requireArguments,
  type TorchLayout,
} from "@halfstep/nn";
import {
  embedding,
  narrow,
  type Runtime,
  ShapeError,
  select,
  type Tensor,
  tanh,
} from "@halfstep/tensor/functional";
import { BertEncoder } from "./encoder.js";
import {
  type BertConfig,
  type BertOptions,
  type BertParts,
  bertConfig,
  bertLinear,
  bertOptionNames,
  bertWeights,
} from "./options.js";

/** Inputs of a BERT. */
export interface BertInputs {
  /** uint32 [batch, length]: 1 for tokens, 0 for padding, which is hidden from all tokens. Default: no padding. */
  readonly attentionMask?: Tensor;
  /** uint32 [batch, length]: which segment a token belongs to. Default: all to segment 0. */
  readonly tokenTypeIds?: Tensor;
  /**
   * Added to the word embeddings for this pass, [vocabSize, hiddenSize]: adversarial training makes them worse that way (Miyato et
   * al. 2017). Default: nothing.
   */
  readonly perturbation?: Tensor;
  /**
   * Added to the embeddings of tokens before their norm, [batch, length, hiddenSize], for what is known of a token besides what it
   * is, such as how its word is spelt. Default: nothing.
   */
  readonly tokenFeatures?: Tensor;
}

/**
 * Bidirectional encoder (Devlin et al. 2018) with the structure and names of transformers' BertModel, so that its checkpoints
 * load by `loadTorchStateDict`.
 */
export class BertModel extends Module {
  readonly config: BertConfig;
  /** Draws the masks of dropout. Its offset belongs into a checkpoint. */
  readonly generator: Generator;
  readonly embeddings: BertEmbeddings;
  readonly encoder: BertEncoder;
  /** Absent in models that look at tokens only. */
  readonly pooler: BertPooler | undefined;

  constructor(
    runtime: Runtime,
    options: BertOptions,
    { pooler = true }: { pooler?: boolean } = {},
  ) {
    super();
    requireArguments(`new BertModel(runtime, { ${bertOptionNames} })`, runtime, options);
    this.config = bertConfig(options);
    this.generator = new Generator(options.seed);
    const parts = this.parts(runtime);
    this.embeddings = new BertEmbeddings(parts);
    this.encoder = new BertEncoder(parts);
    this.pooler = pooler ? new BertPooler(parts) : undefined;
  }

  /** How many parameters an encoder of these options has, with its pooler, which is not built for that. 109,482,240 for BERT base. */
  static parameterCount(options: Omit<BertOptions, "seed"> = {}): number {
    const config = bertConfig({ seed: 0, ...options });
    const { vocabSize, maxPositionEmbeddings, typeVocabSize, numHiddenLayers } = config;
    const { hiddenSize: h, intermediateSize: i } = config;
    const layer = 4 * (h + 1) * h + (h + 1) * i + (i + 1) * h + 4 * h;
    const rows = vocabSize + maxPositionEmbeddings + typeVocabSize;
    return (rows + 2) * h + numHiddenLayers * layer + (h + 1) * h;
  }

  /** @internal The parts from which a head is made. */
  parts(runtime: Runtime): BertParts {
    return { runtime, generator: this.generator, config: this.config };
  }

  override get torchLayout(): TorchLayout {
    return { base: "bert" };
  }

  /** Two sequences of the token 1. */
  override exampleInputs(): readonly [Tensor] {
    const { runtime } = this.embeddings.wordEmbeddings.weight;
    const length = Math.min(this.config.maxPositionEmbeddings, 8);
    return [runtime.tensor(new Uint32Array(2 * length).fill(1), [2, length])];
  }

  /**
   * @param inputIds uint32 [batch, length]
   * @returns features of each token, [batch, length, hiddenSize]
   */
  forward(
    inputIds: Tensor,
    { attentionMask, tokenTypeIds, perturbation, tokenFeatures }: BertInputs = {},
  ): Tensor {
    const [batch, length] = inputIds.shape as [number, number];
    const { maxPositionEmbeddings, hiddenSize } = this.config;
    if (inputIds.rank !== 2 || length > maxPositionEmbeddings)
      throw new ShapeError(
        `BERT needs inputIds [batch, length] with at most ${maxPositionEmbeddings} in a sequence, not [${inputIds.shape}]`,
      );
    for (const [name, tensor] of Object.entries({ inputIds, attentionMask, tokenTypeIds })) {
      if (tensor && tensor.dtype !== "uint32")
        throw new DTypeError(`BERT: ${name} are ${tensor.dtype}; make them from a Uint32Array`);
      if (tensor && tensor.shape.join() !== inputIds.shape.join())
        throw new ShapeError(
          `BERT: ${name} [${tensor.shape}] need the shape of inputIds [${inputIds.shape}]`,
        );
    }
    const features = [...inputIds.shape, hiddenSize];
    if (tokenFeatures && tokenFeatures.shape.join() !== features.join())
      throw new ShapeError(`BERT needs tokenFeatures [${features}], not [${tokenFeatures.shape}]`);
    const mask = attentionMask?.reshape([batch, 1, 1, length]);
    const embedded = this.embeddings.forward(inputIds, {
      tokenTypeIds,
      perturbation,
      tokenFeatures,
    });
    return this.encoder.forward(embedded, mask);
  }
}

class BertEmbeddings extends Module {
  readonly wordEmbeddings: Embedding;
  readonly positionEmbeddings: Embedding;
  readonly tokenTypeEmbeddings: Embedding;
  readonly layerNorm: LayerNorm;
  readonly dropout: Dropout;

  constructor({ runtime, generator, config }: BertParts) {
    super();
    const { vocabSize, hiddenSize, maxPositionEmbeddings, typeVocabSize } = config;
    const rows = { generator, weightInit: bertWeights(config) };
    this.wordEmbeddings = new Embedding(runtime, vocabSize, hiddenSize, {
      ...rows,
      paddingIndex: config.padTokenId,
    });
    this.positionEmbeddings = new Embedding(runtime, maxPositionEmbeddings, hiddenSize, rows);
    this.tokenTypeEmbeddings = new Embedding(runtime, typeVocabSize, hiddenSize, rows);
    this.layerNorm = new LayerNorm(runtime, hiddenSize, { eps: config.layerNormEps });
    this.dropout = new Dropout({ p: config.hiddenDropoutProb, generator });
  }

  override get torchLayout(): TorchLayout {
    return { names: { layerNorm: "LayerNorm" }, ignored: ["position_ids", "token_type_ids"] };
  }

  forward(
    inputIds: Tensor,
    {
      tokenTypeIds,
      perturbation,
      tokenFeatures,
    }: {
      readonly [Input in "tokenTypeIds" | "perturbation" | "tokenFeatures"]: Tensor | undefined;
    },
  ): Tensor {
    const positions = narrow(this.positionEmbeddings.weight, 0, 0, inputIds.shape[1] as number);
    const types = tokenTypeIds
      ? this.tokenTypeEmbeddings.forward(tokenTypeIds)
      : narrow(this.tokenTypeEmbeddings.weight, 0, 0, 1);
    const words = this.wordEmbeddings.forward(inputIds);
    const moved = perturbation ? words.add(embedding(inputIds, perturbation)) : words;
    const known = tokenFeatures ? moved.add(tokenFeatures) : moved;
    const sum = known.add(types).add(positions);
    return this.dropout.forward(this.layerNorm.forward(sum));
  }
}

/** Pools the feature of the first token for the whole sequence. */
export class BertPooler extends Module {
  readonly dense: Linear;

  constructor(parts: BertParts) {
    super();
    const { hiddenSize } = parts.config;
    this.dense = bertLinear(parts, hiddenSize, hiddenSize);
  }

  /**
   * @param features [batch, length, hiddenSize]
   * @returns [batch, hiddenSize]
   */
  forward(features: Tensor): Tensor {
    return tanh(this.dense.forward(select(features, 1, 0)));
  }
}
