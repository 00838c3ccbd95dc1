import { activationNames } from "../activation.js";
import type { GPTOptions } from "../gpt.js";
import type { ConfigSource } from "./bert-config.js";
import { ConfigFields } from "./config-fields.js";

/** The options of a GPT-2 from its `config.json`. */
export type GPTConfigOptions = Required<Omit<GPTOptions, "seed">>;

/**
 * The options of a GPT-2 whose `config.json` transformers wrote. Every field that affects the computation is used, or refused where
 * it is not supported: another `model_type`, unscaled attention, a head of its own, cross attention, quantized weights. Sizes are
 * required; other fields have transformers' defaults.
 *
 * @throws ConfigError with the field and what it may be. Nothing has been allocated then: compare
 * `GPT.parameterCount(options)` with the weights before a model is made.
 *
 * @example
 * const options = gptOptionsOf(JSON.parse(await readFile("gpt2/config.json", "utf8")), { source: "gpt2/config.json" });
 * const model = new GPT(runtime, { ...options, seed: 0 });
 */
export function gptOptionsOf(
  config: unknown,
  { source = "config.json" }: ConfigSource = {},
): GPTConfigOptions {
  const fields = new ConfigFields(config, source);
  fields.require({
    model_type: "gpt2",
    scale_attn_weights: true,
    scale_attn_by_inverse_layer_idx: false,
    add_cross_attention: false,
    tie_word_embeddings: true,
    pruned_heads: "empty",
    quantization_config: "empty",
  });
  const nEmbd = fields.count("n_embd");
  const dropout = fields.fraction("resid_pdrop", 0.1);
  const options = {
    vocabSize: fields.count("vocab_size"),
    blockSize: fields.count("n_positions"),
    nLayer: fields.count("n_layer"),
    nHead: fields.count("n_head"),
    nEmbd,
    nInner: fields.count("n_inner", 4 * nEmbd),
    activation: fields.oneOf("activation_function", activationNames, "gelu_new"),
    dropout,
    embdDropout: fields.fraction("embd_pdrop", 0.1),
    attnDropout: fields.fraction("attn_pdrop", 0.1),
    layerNormEps: fields.positive("layer_norm_epsilon", 1e-5),
    bias: true,
    initializerRange: fields.positive("initializer_range", 0.02),
  };
  if (nEmbd % options.nHead !== 0)
    fields.refuse(
      `has n_embd ${nEmbd}, which is no multiple of n_head ${options.nHead}: put the config.json of the weights in its place`,
    );
  return options;
}
