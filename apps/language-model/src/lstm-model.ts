import type { GPT } from "@halfstep/models";
import { Embedding, Generator, Linear, LSTM, Module } from "@halfstep/nn";
import { dropout, type Runtime, type Tensor } from "@halfstep/tensor";

/** The sizes of an {@link LstmModel}. */
export interface LstmConfig {
  readonly arch: "lstm";
  readonly vocabSize: number;
  /** Tokens in a sequence. Each sequence begins with a state of zeros. */
  readonly blockSize: number;
  readonly layers: number;
  readonly width: number;
  readonly dropout: number;
}

/** Options of {@link LstmModel}. */
export interface LstmModelOptions extends LstmConfig {
  readonly seed: number;
}

/** A language model of embeddings, layers of long short-term memory, and logits. */
export class LstmModel extends Module {
  readonly config: LstmConfig;
  readonly generator: Generator;
  readonly embedding: Embedding;
  readonly lstm: LSTM;
  readonly head: Linear;

  constructor(runtime: Runtime, { seed, ...config }: LstmModelOptions) {
    super();
    const { vocabSize, width, layers: numLayers } = config;
    this.config = config;
    const generator = new Generator(seed);
    this.generator = generator;
    this.embedding = new Embedding(runtime, vocabSize, width, { generator });
    this.lstm = new LSTM(runtime, width, width, {
      ...{ numLayers, batchFirst: true, dropout: config.dropout, generator },
    });
    this.head = new Linear(runtime, width, vocabSize, { generator });
  }

  /** The number of parameters of a model of these sizes. */
  static parameterCount({ vocabSize, width, layers }: LstmConfig): number {
    return 2 * vocabSize * width + vocabSize + layers * (8 * width * width + 8 * width);
  }

  /** Two sequences of the token 0. */
  override exampleInputs(): readonly [Tensor] {
    return [this.embedding.weight.runtime.tensor(new Uint32Array(16), [2, 8])];
  }

  /** Logits [batch, length, words] of the token after each, from tokens [batch, length]. */
  forward(tokens: Tensor): Tensor {
    return this.head.forward(this.features(tokens));
  }

  /** What the logits are computed from, [batch, length, width]. */
  features(tokens: Tensor): Tensor {
    const { output } = this.lstm.forward(this.embedding.forward(tokens));
    const { generator, config, isTraining } = this;
    return isTraining && config.dropout > 0
      ? dropout(output, { p: config.dropout, generator })
      : output;
  }
}

/** The models of this program. */
export type LanguageNet = GPT | LstmModel;
