import type { Module } from "@halfstep/nn";
import type { Runtime } from "@halfstep/tensor";
import {
  type JaxArray,
  type JaxLibrary,
  type JaxTree,
  jaxArray,
  jaxTraining,
} from "../lanes/jax.js";
import type { Prepared } from "../lanes/prepared.js";
import { type TfjsLibrary, type TfTensor, tfjsTraining } from "../lanes/tfjs.js";
import { oneHotRows, transposed } from "../samples.js";
import { type PeerParameter, peerParameters } from "./peer-parameters.js";

/** The parts of transformers, in terms of a library; tokens are rows: [batch · length, features]. */
export interface TransformerParts<T> {
  /** Rows of the table `words`, with what is the same for each sequence: [length, features], or [features]. */
  embedding(words: string, ...added: readonly string[]): T;
  layerNorm(x: T, path: string): T;
  linear(x: T, path: string): T;
  /** Of all heads. */
  attention(query: T, key: T, value: T): T;
  gelu(x: T): T;
  add(a: T, b: T): T;
  /** For one more use of `x`. */
  again(x: T): T;
  /** Products with the rows of the table `words`. */
  scores(x: T, words: string): T;
  /** Adds the parameter at `path` to each row. */
  shifted(x: T, path: string): T;
}

/** A kind of transformer, for libraries that have no such models. */
export interface Architecture {
  readonly eps: number;
  readonly isCausal: boolean;
  /** Whether GELU is approximated by a hyperbolic tangent. */
  readonly isGeluApproximate: boolean;
  /** Tables that are read by rows, whose other parameters of two dimensions are weights of linear layers. */
  readonly tables: readonly string[];
  /** What `logits` calls the model's parameters: some are taken apart. */
  parameters(of: readonly PeerParameter[]): PeerParameter[];
  /** Scores of all words, [batch · length, words]. */
  logits<T>(parts: TransformerParts<T>): T;
}

/** A transformer in training. */
export interface TrainedTransformer {
  /** The model here: the others start from its parameters. */
  make(runtime: Runtime): Module;
  readonly architecture: Architecture;
  /** [batch, length] */
  readonly tokens: ArrayLike<number>;
  readonly labels: ArrayLike<number>;
  readonly batch: number;
  readonly length: number;
  readonly heads: number;
  readonly size: number;
  readonly words: number;
  readonly lr: number;
}

/** The parameters, with weights of linear layers as [in, out]. */
async function parametersOf({ make, architecture }: TrainedTransformer): Promise<PeerParameter[]> {
  const { parameters, tables } = architecture;
  return parameters(await peerParameters(make)).map(({ path, values, shape }) => {
    const [outputs = 1, inputs] = shape;
    return inputs === undefined || tables.includes(path)
      ? { path, values, shape }
      : { path, values: transposed(values, outputs, inputs), shape: [inputs, outputs] };
  });
}

export async function jaxTransformer(
  library: JaxLibrary,
  trained: TrainedTransformer,
): Promise<Prepared> {
  const { architecture, tokens, labels, batch, length, heads, size, words, lr } = trained;
  const { eps, isCausal, isGeluApproximate: approximate } = architecture;
  const { numpy: np, nn } = library;
  const initial: JaxTree = {};
  for (const { path, values, shape } of await parametersOf(trained))
    initial[path] = jaxArray(library, values, shape);
  const loss = (p: JaxTree, input?: JaxArray, target?: JaxArray): JaxArray => {
    const at = (path: string): JaxArray => (p[path] as JaxArray).ref;
    const byHeads = (y: JaxArray): JaxArray => y.reshape([batch, length, heads, size / heads]);
    const parts: TransformerParts<JaxArray> = {
      embedding: (table, ...added) =>
        added
          .reduce(
            (sum, path) => sum.add(at(path)),
            np.matmul(input as JaxArray, at(table)).reshape([batch, length, size]),
          )
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
          .dotProductAttention(byHeads(query), byHeads(key), byHeads(value), { isCausal })
          .reshape([batch * length, size]),
      gelu: (y) => nn.gelu(y, { approximate }),
      add: (a, b) => a.add(b),
      again: (y) => y.ref,
      scores: (y, table) => np.matmul(y, at(table).transpose([1, 0])),
      shifted: (y, path) => y.add(at(path)),
    };
    const total = nn
      .logSoftmax(architecture.logits(parts), -1)
      .mul(target as JaxArray)
      .sum()
      .mul(-1 / labels.length);
    for (const parameter of Object.values(p)) parameter.dispose();
    return total;
  };
  // One-hot rows for tokens, too: a `jit` of jax-js cannot compute the gradient of indexing.
  const rows = (classes: ArrayLike<number>): JaxArray =>
    jaxArray(library, oneHotRows(classes, words), [classes.length, words]);
  return jaxTraining(library, initial, loss, [rows(tokens), rows(labels)], lr);
}

export async function tfjsTransformer(
  library: TfjsLibrary,
  trained: TrainedTransformer,
): Promise<Prepared> {
  const { architecture, tokens, labels, batch, length, heads, size, words, lr } = trained;
  const { eps, isCausal, isGeluApproximate } = architecture;
  const { tf } = library;
  const variables = new Map<string, TfTensor>();
  for (const { path, values, shape } of await parametersOf(trained))
    variables.set(path, tf.variable(tf.tensor(values, shape)));
  const at = (path: string): TfTensor => variables.get(path) as TfTensor;
  const rows = (classes: ArrayLike<number>): TfTensor =>
    tf.tensor(oneHotRows(classes, words), [classes.length, words]);
  // Its backend for WebAssembly has no gradient of what is gathered.
  const hasGather = tf.getBackend() !== "wasm";
  const input = hasGather ? tf.tensor1d(Int32Array.from(tokens), "int32") : rows(tokens);
  const target = rows(labels);
  const hidden = Float32Array.from({ length: length * length }, (_, i) =>
    i % length > Math.floor(i / length) ? -1e9 : 0,
  );
  const mask = tf.tensor(hidden, [length, length]);
  const byHeads = (x: TfTensor): TfTensor =>
    tf.transpose(tf.reshape(x, [batch, length, heads, size / heads]), [0, 2, 1, 3]);
  const parts: TransformerParts<TfTensor> = {
    embedding(table, ...added) {
      const found = hasGather ? tf.gather(at(table), input) : tf.matMul(input, at(table));
      const bySequence = tf.reshape(found, [batch, length, size]);
      const sum = added.reduce((x, path) => tf.add(x, at(path)), bySequence);
      return tf.reshape(sum, [batch * length, size]);
    },
    layerNorm(x, path) {
      const { mean, variance } = tf.moments(x, 1, true);
      const normal = tf.mul(tf.sub(x, mean), tf.rsqrt(tf.add(variance, eps)));
      return tf.add(tf.mul(normal, at(`${path}.weight`)), at(`${path}.bias`));
    },
    linear: (x, path) => tf.add(tf.matMul(x, at(`${path}.weight`)), at(`${path}.bias`)),
    attention(query, key, value) {
      const scale = (size / heads) ** -0.5;
      const scores = tf.mul(tf.matMul(byHeads(query), byHeads(key), false, true), scale);
      const shares = tf.softmax(isCausal ? tf.add(scores, mask) : scores);
      const mixed = tf.matMul(shares, byHeads(value));
      return tf.reshape(tf.transpose(mixed, [0, 2, 1, 3]), [batch * length, size]);
    },
    gelu(x) {
      const half = tf.mul(x, 0.5);
      if (!isGeluApproximate) return tf.mul(half, tf.add(tf.erf(tf.mul(x, Math.SQRT1_2)), 1));
      const cube = tf.mul(x, tf.mul(x, x));
      const inner = tf.mul(tf.add(x, tf.mul(cube, 0.044715)), Math.sqrt(2 / Math.PI));
      return tf.mul(half, tf.add(tf.tanh(inner), 1));
    },
    add: (a, b) => tf.add(a, b),
    again: (x) => x,
    scores: (x, table) => tf.matMul(x, at(table), false, true),
    shifted: (x, path) => tf.add(x, at(path)),
  };
  const loss = (): TfTensor => tf.losses.softmaxCrossEntropy(target, architecture.logits(parts));
  return tfjsTraining(library, [...variables.values()], loss, lr);
}
