import type { Module } from "@halfstep/nn";
import type { Runtime } from "@halfstep/tensor";
import {
  type JaxArray,
  type JaxLibrary,
  type JaxTree,
  jaxArray,
  jaxTraining,
} from "../lanes/jax.js";
import { type TfjsLibrary, type TfTensor, tfjsTraining } from "../lanes/tfjs.js";
import { oneHotRows, transposed } from "../samples.js";
import type { Prepared } from "../workload.js";
import { type PeerParameter, peerParameters } from "./peer-parameters.js";

/** A GPT in training. */
export interface TrainedGPT {
  /** The model here: the others start from its parameters. */
  make(runtime: Runtime): Module;
  /** [batch, length] */
  readonly tokens: ArrayLike<number>;
  readonly labels: ArrayLike<number>;
  readonly batch: number;
  readonly length: number;
  readonly layers: number;
  readonly heads: number;
  readonly size: number;
  readonly words: number;
  readonly lr: number;
}

/** What a transformer is made of, in the terms of a library, of tokens as rows: [batch · length, features]. */
interface Parts<T> {
  /** Rows of the token embedding, and of the positions. */
  embedding(): T;
  layerNorm(x: T, path: string): T;
  linear(x: T, path: string): T;
  /** Causal, of all heads. */
  attention(query: T, key: T, value: T): T;
  gelu(x: T): T;
  add(a: T, b: T): T;
  /** For one more use of `x`. */
  again(x: T): T;
  /** Scores of all words, by the token embedding. */
  head(x: T): T;
}

/** The logits, as `GPT` of @halfstep/models computes them. */
function logitsOf<T>(parts: Parts<T>, layers: number): T {
  const { embedding, layerNorm, linear, attention, gelu, add, again, head } = parts;
  let x = embedding();
  for (let layer = 0; layer < layers; layer++) {
    const path = `transformer.h.${layer}`;
    const normal = layerNorm(again(x), `${path}.ln1`);
    const [query, key] = ["query", "key"].map((part) =>
      linear(again(normal), `${path}.attn.${part}`),
    ) as [T, T];
    const mixed = attention(query, key, linear(normal, `${path}.attn.value`));
    x = add(x, linear(mixed, `${path}.attn.cProj`));
    const hidden = gelu(linear(layerNorm(again(x), `${path}.ln2`), `${path}.mlp.cFc`));
    x = add(x, linear(hidden, `${path}.mlp.cProj`));
  }
  return head(layerNorm(x, "transformer.lnF"));
}

const eps = 1e-5;
const [wte, wpe] = ["transformer.wte.weight", "transformer.wpe.weight"] as const;

/** The parameters with the joint projection of query, key and value taken apart, and weights of linear layers as [in, out]. */
async function parametersOf({ make, size }: TrainedGPT): Promise<PeerParameter[]> {
  const parameters = await peerParameters(make);
  return parameters
    .flatMap(({ path, values, shape }) =>
      path.includes(".cAttn.")
        ? ["query", "key", "value"].map((part, i) => ({
            path: path.replace("cAttn", part),
            values: values.slice((i * values.length) / 3, ((i + 1) * values.length) / 3),
            shape: [size, ...shape.slice(1)],
          }))
        : [{ path, values, shape }],
    )
    .map(({ path, values, shape }) => {
      const [outputs = 1, inputs] = shape;
      return inputs === undefined || path === wte || path === wpe
        ? { path, values, shape }
        : { path, values: transposed(values, outputs, inputs), shape: [inputs, outputs] };
    });
}

export async function jaxGPT(library: JaxLibrary, trained: TrainedGPT): Promise<Prepared> {
  const { tokens, labels, batch, length, layers, heads, size, words, lr } = trained;
  const { numpy: np, nn } = library;
  const initial: JaxTree = {};
  for (const { path, values, shape } of await parametersOf(trained))
    initial[path] = jaxArray(library, values, shape);
  const loss = (p: JaxTree, x?: JaxArray, target?: JaxArray): JaxArray => {
    const at = (path: string): JaxArray => (p[path] as JaxArray).ref;
    const byHeads = (y: JaxArray): JaxArray => y.reshape([batch, length, heads, size / heads]);
    const parts: Parts<JaxArray> = {
      embedding: () =>
        np
          .matmul(x as JaxArray, at(wte))
          .reshape([batch, length, size])
          .add(at(wpe))
          .reshape([batch * length, size]),
      layerNorm(y, path) {
        const centred = y.ref.sub(np.mean(y, 1, { keepdims: true }));
        const variance = np.mean(centred.ref.mul(centred.ref), 1, { keepdims: true });
        return centred
          .mul(np.reciprocal(np.sqrt(variance.add(eps))))
          .mul(at(`${path}.weight`))
          .add(at(`${path}.bias`));
      },
      linear: (y, path) => np.matmul(y, at(`${path}.weight`)).add(at(`${path}.bias`)),
      attention: (query, key, value) =>
        nn
          .dotProductAttention(byHeads(query), byHeads(key), byHeads(value), { isCausal: true })
          .reshape([batch * length, size]),
      gelu: (y) => nn.gelu(y, { approximate: true }),
      add: (a, b) => a.add(b),
      again: (y) => y.ref,
      head: (y) => np.matmul(y, at(wte).transpose([1, 0])),
    };
    const total = nn
      .logSoftmax(logitsOf(parts, layers), -1)
      .mul(target as JaxArray)
      .sum()
      .mul(-1 / labels.length);
    for (const parameter of Object.values(p)) parameter.dispose();
    return total;
  };
  const rows = (classes: ArrayLike<number>): JaxArray =>
    jaxArray(library, oneHotRows(classes, words), [classes.length, words]);
  return jaxTraining(library, initial, loss, [rows(tokens), rows(labels)], lr);
}

export async function tfjsGPT(library: TfjsLibrary, trained: TrainedGPT): Promise<Prepared> {
  const { tokens, labels, batch, length, layers, heads, size, words, lr } = trained;
  const { tf } = library;
  const variables = new Map<string, TfTensor>();
  for (const { path, values, shape } of await parametersOf(trained))
    variables.set(path, tf.variable(tf.tensor(values, shape)));
  const at = (path: string): TfTensor => variables.get(path) as TfTensor;
  const rows = (classes: ArrayLike<number>): TfTensor =>
    tf.tensor(oneHotRows(classes, words), [classes.length, words]);
  const [input, target] = [rows(tokens), rows(labels)];
  const hidden = Float32Array.from({ length: length * length }, (_, i) =>
    i % length > Math.floor(i / length) ? -1e9 : 0,
  );
  const mask = tf.tensor(hidden, [length, length]);
  const byHeads = (x: TfTensor): TfTensor =>
    tf.transpose(tf.reshape(x, [batch, length, heads, size / heads]), [0, 2, 1, 3]);
  const parts: Parts<TfTensor> = {
    embedding: () =>
      tf.reshape(tf.add(tf.reshape(tf.matMul(input, at(wte)), [batch, length, size]), at(wpe)), [
        batch * length,
        size,
      ]),
    layerNorm(x, path) {
      const { mean, variance } = tf.moments(x, 1, true);
      const normal = tf.mul(tf.sub(x, mean), tf.rsqrt(tf.add(variance, eps)));
      return tf.add(tf.mul(normal, at(`${path}.weight`)), at(`${path}.bias`));
    },
    linear: (x, path) => tf.add(tf.matMul(x, at(`${path}.weight`)), at(`${path}.bias`)),
    attention(query, key, value) {
      const scale = (size / heads) ** -0.5;
      const scores = tf.mul(tf.matMul(byHeads(query), byHeads(key), false, true), scale);
      const mixed = tf.matMul(tf.softmax(tf.add(scores, mask)), byHeads(value));
      return tf.reshape(tf.transpose(mixed, [0, 2, 1, 3]), [batch * length, size]);
    },
    gelu(x) {
      const cube = tf.mul(x, tf.mul(x, x));
      const inner = tf.mul(tf.add(x, tf.mul(cube, 0.044715)), Math.sqrt(2 / Math.PI));
      return tf.mul(tf.mul(x, 0.5), tf.add(tf.tanh(inner), 1));
    },
    add: (a, b) => tf.add(a, b),
    again: (x) => x,
    head: (x) => tf.matMul(x, at(wte), false, true),
  };
  const loss = (): TfTensor => tf.losses.softmaxCrossEntropy(target, logitsOf(parts, layers));
  return tfjsTraining(library, [...variables.values()], loss, lr);
}
