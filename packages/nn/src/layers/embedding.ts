import {
  embedding,
  type Generator,
  type Runtime,
  type Tensor,
  type Variable,
} from "@halfstep/tensor/functional";
import { requireArguments } from "../arguments.js";
import { type InitOptions, normal } from "../init.js";
import { Module, parameter } from "../module.js";

/** Options of `Embedding`. */
export interface EmbeddingLayerOptions extends Pick<InitOptions, "weightInit"> {
  /** The index of padding, from the end where negative: its row starts as zeros and gets no gradient. */
  readonly paddingIndex?: number;
  /** Draws the initial rows, by default N(0, 1) as in torch. */
  readonly generator: Generator;
}

/** A row of features for each word of a vocabulary. */
export class Embedding extends Module {
  readonly words: number;
  readonly features: number;
  readonly paddingIndex: number | undefined;
  /** [words, features] */
  readonly weight: Variable;

  constructor(runtime: Runtime, words: number, features: number, options: EmbeddingLayerOptions) {
    super();
    requireArguments(
      "new Embedding(runtime, words, features, { generator, paddingIndex?, weightInit? })",
      runtime,
      words,
      features,
      options,
    );
    const { paddingIndex, generator, weightInit = normal } = options;
    const padding =
      paddingIndex !== undefined && paddingIndex < 0 ? paddingIndex + words : paddingIndex;
    if (padding !== undefined && !(Number.isInteger(padding) && padding >= 0 && padding < words))
      throw new RangeError(`Embedding: paddingIndex ${paddingIndex} is none of the ${words} words`);
    this.words = words;
    this.features = features;
    this.paddingIndex = padding;
    const values = weightInit([words, features], generator);
    if (padding !== undefined) values.fill(0, padding * features, (padding + 1) * features);
    this.weight = parameter(runtime, values, [words, features], "weight");
  }

  /** @param index uint32 of any shape. The result is [...index, features]; an index out of range gives NaN. */
  forward(index: Tensor): Tensor {
    const { weight, paddingIndex } = this;
    return embedding(index, weight, paddingIndex === undefined ? {} : { paddingIndex });
  }
}
