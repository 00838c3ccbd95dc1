import {
  embedding,
  type Generator,
  type Runtime,
  type Tensor,
  type Variable,
} from "@halfstep/tensor/functional";
import { requireArguments, shown } from "../arguments.js";
import { type InitOptions, normal } from "../init.js";
import { Module, parameter } from "../module.js";

/** Options of `Embedding`. */
export interface EmbeddingLayerOptions extends Pick<InitOptions, "weightInit"> {
  /** The index of padding: its row starts as zeros and gets no gradient. A negative one counts from the end, as in torch. */
  readonly paddingIndex?: number;
  /** Draws the initial rows, by default N(0, 1) as in torch. */
  readonly generator: Generator;
}

const call = "new Embedding(runtime, words, features, { generator, paddingIndex?, weightInit? })";

/** A row of features for each word of a vocabulary. */
export class Embedding extends Module {
  readonly words: number;
  readonly features: number;
  /** Counted from the start. */
  readonly paddingIndex: number | undefined;
  /** [words, features] */
  readonly weight: Variable;

  constructor(runtime: Runtime, words: number, features: number, options: EmbeddingLayerOptions);
  constructor(
    runtime: Runtime,
    words: number,
    features: number,
    options: EmbeddingLayerOptions,
    ...surplus: readonly unknown[]
  ) {
    super();
    requireArguments(call, runtime, words, features, options, ...surplus);
    const { generator, weightInit = normal } = options;
    const paddingIndex = rowOf(options.paddingIndex, words);
    this.words = words;
    this.features = features;
    this.paddingIndex = paddingIndex;
    const values = weightInit([words, features], generator);
    if (paddingIndex !== undefined)
      values.fill(0, paddingIndex * features, (paddingIndex + 1) * features);
    this.weight = parameter(runtime, values, [words, features], "weight");
  }

  /** @param index uint32 of any shape. The result is [...index, features]; an index out of range gives NaN. */
  forward(index: Tensor): Tensor {
    const { weight, paddingIndex } = this;
    return embedding(index, weight, paddingIndex === undefined ? {} : { paddingIndex });
  }
}

/** @throws RangeError where a padding index is no row of the table */
function rowOf(index: number | undefined, words: number): number | undefined {
  if (index === undefined) return undefined;
  if (!Number.isInteger(index) || index < -words || index >= words)
    throw new RangeError(
      `${call}: paddingIndex is ${shown(index)}; pass a whole number from ${-words} to ${words - 1}`,
    );
  return index < 0 ? index + words : index;
}
