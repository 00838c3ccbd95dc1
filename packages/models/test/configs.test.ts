// Configurations that others made: every field of every one, missing, null, of the wrong type, negative, broken, huge. A field is
// taken over or refused by its name, and no size that was not checked reaches a model.

import { cpuRuntime, noGrad } from "@halfstep/tensor";
import { hostileFields, hostileValues } from "@halfstep/vitest/hostile";
import { describe, expect, it } from "vitest";
import {
  type ActivationName,
  BertForMaskedLM,
  BertModel,
  bertOptionsOf,
  ConfigError,
  GPT,
  gptOptionsOf,
} from "../src/index.js";

// As transformers writes them, without what no model is made of.
const bert = {
  model_type: "bert",
  architectures: ["BertForMaskedLM"],
  hidden_act: "gelu",
  vocab_size: 13,
  hidden_size: 8,
  num_hidden_layers: 2,
  num_attention_heads: 2,
  intermediate_size: 12,
  max_position_embeddings: 16,
  hidden_dropout_prob: 0.1,
  attention_probs_dropout_prob: 0.1,
  classifier_dropout: null,
  type_vocab_size: 2,
  layer_norm_eps: 1e-12,
  initializer_range: 0.02,
  pad_token_id: 0,
  position_embedding_type: "absolute",
  is_decoder: false,
  add_cross_attention: false,
  tie_word_embeddings: true,
  pruned_heads: {},
  use_cache: true,
};
const gpt2 = {
  model_type: "gpt2",
  activation_function: "gelu_new",
  vocab_size: 13,
  n_positions: 16,
  n_ctx: 16,
  n_embd: 8,
  n_layer: 2,
  n_head: 2,
  n_inner: null,
  resid_pdrop: 0.1,
  embd_pdrop: 0.1,
  attn_pdrop: 0.1,
  layer_norm_epsilon: 1e-5,
  initializer_range: 0.02,
  scale_attn_weights: true,
  scale_attn_by_inverse_layer_idx: false,
  add_cross_attention: false,
  tie_word_embeddings: true,
};

const readers = [
  ["BERT", bert, bertOptionsOf, BertModel.parameterCount],
  ["GPT-2", gpt2, gptOptionsOf, GPT.parameterCount],
] as const;

describe.each(readers)("a config.json of %s", (_, plain, optionsOf, parameterCount) => {
  const read = (config: unknown): Readonly<Record<string, unknown>> =>
    optionsOf(config, { source: "x/config.json" });

  it("that is wrong in a field is refused by it in a line, or makes a model that can be counted", () => {
    const fields = Object.keys(plain);
    for (const { field, kind, config } of hostileFields(plain, fields)) {
      const about = `${field} ${kind}`;
      try {
        const count = parameterCount(read(config));
        // A size beyond all weights is told by the count, which allocates nothing.
        expect(Number.isFinite(count) && count > 0, about).toBe(true);
      } catch (error) {
        expect(error, about).toBeInstanceOf(ConfigError);
        const { message } = error as ConfigError;
        expect(message, about).toMatch(/^x\/config\.json: has (no )?\S+/);
        expect(message, about).toContain(field);
        expect(message.length, about).toBeLessThan(300);
        expect(message, about).not.toContain("\n");
      }
    }
  });

  it("that is no object is refused", () => {
    for (const [kind, value] of Object.entries(hostileValues))
      if (typeof value !== "object" || value === null || Array.isArray(value))
        expect(() => read(value), kind).toThrow(/^x\/config\.json: is .*: it must be an object/);
  });

  it("has all sizes, and transformers' defaults for the rest", () => {
    const sizes = Object.entries(plain).filter(([, value]) => Number.isSafeInteger(value));
    const bare = Object.fromEntries(sizes);
    expect(read({ ...bare, model_type: plain.model_type })).toEqual(read(plain));
  });

  it("reads nothing from prototypes", () => {
    expect(() => read(JSON.parse('{"__proto__":{"vocab_size":13},"model_type":1}'))).toThrow(
      ConfigError,
    );
  });
});

describe("what would make another model is refused by its name", () => {
  it.each([
    [{ model_type: "roberta" }, 'has model_type "roberta": only "bert" is supported'],
    [{ position_embedding_type: "relative_key" }, 'has position_embedding_type "relative_key"'],
    [{ is_decoder: true }, "has is_decoder true: only false is supported"],
    [{ tie_word_embeddings: false }, "has tie_word_embeddings false"],
    [{ pruned_heads: { "0": [1] } }, "has pruned_heads an object"],
    [{ quantization_config: { bits: 4 } }, "has quantization_config an object"],
    [{ hidden_act: "laplace" }, 'has hidden_act "laplace": it may be gelu, '],
    [
      { num_attention_heads: 3 },
      "has hidden_size 8, which is no multiple of num_attention_heads 3",
    ],
    [{ pad_token_id: 13 }, "has pad_token_id 13, beyond its vocab_size 13"],
  ])("BERT with %o", (change, message) => {
    expect(() => bertOptionsOf({ ...bert, ...change })).toThrow(message);
  });

  it.each([
    [{ model_type: "llama" }, 'has model_type "llama": only "gpt2" is supported'],
    [{ activation_function: "mish" }, 'has activation_function "mish": it may be gelu, '],
    [{ scale_attn_weights: false }, "has scale_attn_weights false: only true is supported"],
    [{ scale_attn_by_inverse_layer_idx: true }, "has scale_attn_by_inverse_layer_idx true"],
    [{ n_head: 3 }, "has n_embd 8, which is no multiple of n_head 3"],
  ])("GPT-2 with %o", (change, message) => {
    expect(() => gptOptionsOf({ ...gpt2, ...change })).toThrow(message);
  });
});

describe("what can be taken over is", () => {
  const runtime = cpuRuntime();
  const tokens = runtime.tensor(Uint32Array.of(1, 2, 3, 4), [1, 4]);

  it("all activations between the linear layers, in the head of hidden words too", async () => {
    const scores = async (hidden_act: string) => {
      const options = bertOptionsOf({ ...bert, hidden_act, initializer_range: 0.5 });
      const model = new BertForMaskedLM(runtime, { ...options, seed: 1 }).eval();
      return noGrad(() => model.forward(tokens)).toArray();
    };
    const plain = await scores("gelu");
    expect(await scores("gelu_python")).toEqual(plain);
    expect(await scores("swish")).toEqual(await scores("silu"));
    const others: readonly ActivationName[] = ["relu", "gelu_new", "quick_gelu", "relu2", "tanh"];
    for (const other of others) expect(await scores(other), other).not.toEqual(plain);
  });

  it("GPT-2's activation, inner size, eps and each dropout", async () => {
    const change = { n_inner: 12, activation_function: "relu", layer_norm_epsilon: 1e-3 };
    const options = gptOptionsOf({ ...gpt2, ...change, attn_pdrop: 0.3, embd_pdrop: 0 });
    const model = new GPT(runtime, { ...options, seed: 1 });
    expect(model.transformer.h[0]?.mlp.cFc.weight.shape).toEqual([12, 8]);
    expect(model.transformer.lnF.options.eps).toBe(1e-3);
    expect(model.transformer.h[0]?.attn.dropout).toBe(0.3);
    expect(model.transformer.drop.p).toBe(0);
    const sizes = [...model.parameters()].map(({ size }) => size);
    expect(sizes.reduce((a, b) => a + b)).toBe(GPT.parameterCount(options));
    const scores = await noGrad(() => model.eval().forward(tokens)).toArray();
    const gelu = new GPT(runtime, { ...options, activation: "gelu_new", seed: 1 }).eval();
    expect(await noGrad(() => gelu.forward(tokens)).toArray()).not.toEqual(scores);
  });
});
