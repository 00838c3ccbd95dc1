import type { Architecture, TransformerParts } from "./transformer-peers.js";

const words = "transformer.wte.weight";
const positions = "transformer.wpe.weight";

/** The computation of `GPT` of @halfstep/models. */
export const gptArchitecture = (layers: number): Architecture => ({
  eps: 1e-5,
  isCausal: true,
  isGeluApproximate: true,
  tables: [words, positions],
  // The joint projection to query, key and value is taken apart.
  parameters: (all) =>
    all.flatMap(({ path, values, shape: [outputs = 1, ...inputs] }) =>
      path.includes(".cAttn.")
        ? ["query", "key", "value"].map((part, i) => ({
            path: path.replace("cAttn", part),
            values: values.slice((i * values.length) / 3, ((i + 1) * values.length) / 3),
            shape: [outputs / 3, ...inputs],
          }))
        : [{ path, values, shape: [outputs, ...inputs] }],
    ),
  logits<T>(parts: TransformerParts<T>): T {
    const { embedding, layerNorm, linear, attention, gelu, add, again, scores } = parts;
    let x = embedding(words, positions);
    for (let layer = 0; layer < layers; layer++) {
      const path = `transformer.h.${layer}`;
      const normal = layerNorm(again(x), `${path}.ln1`);
      const query = linear(again(normal), `${path}.attn.query`);
      const key = linear(again(normal), `${path}.attn.key`);
      const mixed = attention(query, key, linear(normal, `${path}.attn.value`));
      x = add(x, linear(mixed, `${path}.attn.cProj`));
      const hidden = gelu(linear(layerNorm(again(x), `${path}.ln2`), `${path}.mlp.cFc`));
      x = add(x, linear(hidden, `${path}.mlp.cProj`));
    }
    return scores(layerNorm(x, "transformer.lnF"), words);
  },
});
