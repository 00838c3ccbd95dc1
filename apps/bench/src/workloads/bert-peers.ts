import type { Architecture, TransformerParts } from "./transformer-peers.js";

const embeddings = "bert.embeddings";
const words = `${embeddings}.wordEmbeddings.weight`;
const positions = `${embeddings}.positionEmbeddings.weight`;
const types = `${embeddings}.tokenTypeEmbeddings.weight`;

/** The computation of `BertForMaskedLM` of @halfstep/models, with all tokens in the first segment. */
export const bertArchitecture = (layers: number): Architecture => ({
  eps: 1e-12,
  isCausal: false,
  isGeluApproximate: false,
  tables: [words, positions],
  // The second segment has no tokens.
  parameters: (all) =>
    all.map((parameter) => {
      const [, size = 0] = parameter.shape;
      return parameter.path === types
        ? { path: types, values: parameter.values.slice(0, size), shape: [size] }
        : parameter;
    }),
  logits<T>(parts: TransformerParts<T>): T {
    const { embedding, layerNorm, linear, attention, gelu, add, again, scores, shifted } = parts;
    let x = layerNorm(embedding(words, types, positions), `${embeddings}.layerNorm`);
    for (let layer = 0; layer < layers; layer++) {
      const path = `bert.encoder.layer.${layer}`;
      const query = linear(again(x), `${path}.attention.self.query`);
      const key = linear(again(x), `${path}.attention.self.key`);
      const mixed = attention(query, key, linear(again(x), `${path}.attention.self.value`));
      const attended = linear(mixed, `${path}.attention.output.dense`);
      x = layerNorm(add(attended, x), `${path}.attention.output.layerNorm`);
      const hidden = gelu(linear(again(x), `${path}.intermediate.dense`));
      x = layerNorm(add(linear(hidden, `${path}.output.dense`), x), `${path}.output.layerNorm`);
    }
    const head = "cls.predictions";
    const features = layerNorm(
      gelu(linear(x, `${head}.transform.dense`)),
      `${head}.transform.layerNorm`,
    );
    return shifted(scores(features, words), `${head}.bias`);
  },
});
