import { activationNames } from "../activation.js";
import type { BertOptions } from "../bert/options.js";
import { ConfigFields } from "./config-fields.js";

/** The origin of a configuration. */
export interface ConfigSource {
  /** The file, for messages. Default "config.json". */
  readonly source?: string | undefined;
}

/** The options of a BERT from its `config.json`. */
export type BertConfigOptions = Required<Omit<BertOptions, "seed">>;

/**
 * The options of a BERT whose `config.json` transformers wrote. Every field that affects the computation is used, or refused where
 * it is not supported: another `model_type`, relative positions, a decoder, pruned heads, quantized weights. Sizes are required;
 * other fields have transformers' defaults.
 *
 * @throws ConfigError with the field and what it may be. Nothing has been allocated then: compare
 * `BertModel.parameterCount(options)` with the weights before a model is made.
 *
 * @example
 * const options = bertOptionsOf(JSON.parse(await readFile("bert/config.json", "utf8")), { source: "bert/config.json" });
 * const model = new BertModel(runtime, { ...options, seed: 0 });
 */
export function bertOptionsOf(
  config: unknown,
  { source = "config.json" }: ConfigSource = {},
): BertConfigOptions {
  const fields = new ConfigFields(config, source);
  fields.require({
    model_type: "bert",
    position_embedding_type: "absolute",
    is_decoder: false,
    add_cross_attention: false,
    tie_word_embeddings: true,
    pruned_heads: "empty",
    quantization_config: "empty",
  });
  const hiddenDropoutProb = fields.fraction("hidden_dropout_prob", 0.1);
  const options = {
    vocabSize: fields.count("vocab_size"),
    hiddenSize: fields.count("hidden_size"),
    numHiddenLayers: fields.count("num_hidden_layers"),
    numAttentionHeads: fields.count("num_attention_heads"),
    intermediateSize: fields.count("intermediate_size"),
    maxPositionEmbeddings: fields.count("max_position_embeddings"),
    hiddenAct: fields.oneOf("hidden_act", activationNames, "gelu"),
    hiddenDropoutProb,
    attentionProbsDropoutProb: fields.fraction("attention_probs_dropout_prob", 0.1),
    classifierDropout: fields.fraction("classifier_dropout", hiddenDropoutProb),
    typeVocabSize: fields.count("type_vocab_size", 2),
    layerNormEps: fields.positive("layer_norm_eps", 1e-12),
    initializerRange: fields.positive("initializer_range", 0.02),
    padTokenId: fields.index("pad_token_id", 0),
  };
  const { hiddenSize, numAttentionHeads, padTokenId, vocabSize } = options;
  if (hiddenSize % numAttentionHeads !== 0)
    fields.refuse(
      `has hidden_size ${hiddenSize}, which is no multiple of num_attention_heads ${numAttentionHeads}: put the config.json of the weights in its place`,
    );
  if (padTokenId >= vocabSize)
    fields.refuse(`has pad_token_id ${padTokenId}, beyond its vocab_size ${vocabSize}`);
  return options;
}
