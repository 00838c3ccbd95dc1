import type { Module } from "@halfstep/nn";
import type { Runtime } from "@halfstep/tensor";
import {
  type JaxArray,
  type JaxLibrary,
  type JaxTree,
  jaxArray,
  jaxBatchNorm,
  jaxTraining,
} from "../lanes/jax.js";
import type { Prepared } from "../lanes/prepared.js";
import { type TfjsLibrary, type TfTensor, tfjsBatchNorm, tfjsTraining } from "../lanes/tfjs.js";
import { channelsFirst, filtersFirst, oneHotRows, transposed } from "../samples.js";
import { peerParameters } from "./peer-parameters.js";

/** A ResNet-20 in training. */
export interface TrainedResNet {
  /** The model here: the others start from its parameters. */
  make(runtime: Runtime): Module;
  /** [batch, size, size, channels] */
  readonly images: Float32Array;
  readonly labels: Uint32Array;
  readonly size: number;
  readonly channels: number;
  readonly lr: number;
}

const classes = 10;

/** The parts of a residual network, in terms of a library. Parameters are named by their paths in Halfstep's model. */
interface Parts<T> {
  /** Border of (kernel size − 1) / 2 pixels. */
  conv(x: T, weight: string, kernelSize: number, stride: number): T;
  batchNorm(x: T, path: string): T;
  relu(x: T): T;
  add(a: T, b: T): T;
  /** For one more use of `x`. */
  again(x: T): T;
  /** Mean of all pixels, and the linear layer. */
  head(x: T): T;
}

/** The logits, as `resnet20` of @halfstep/models computes them. */
function logitsOf<T>({ conv, batchNorm, relu, add, again, head }: Parts<T>, images: T): T {
  let x = relu(batchNorm(conv(images, "conv1.weight", 3, 1), "bn1"));
  for (const stage of [1, 2, 3])
    for (const block of [0, 1, 2]) {
      const path = `layer${stage}.${block}`;
      const shrinks = stage > 1 && block === 0;
      const stride = shrinks ? 2 : 1;
      let branch = relu(
        batchNorm(conv(again(x), `${path}.conv1.weight`, 3, stride), `${path}.bn1`),
      );
      branch = batchNorm(conv(branch, `${path}.conv2.weight`, 3, 1), `${path}.bn2`);
      const shortcut = shrinks
        ? batchNorm(conv(x, `${path}.downsample.0.weight`, 1, 2), `${path}.downsample.1`)
        : x;
      x = relu(add(branch, shortcut));
    }
  return head(x);
}

export async function jaxResNet(
  library: JaxLibrary,
  { make, images, labels, size, channels, lr }: TrainedResNet,
): Promise<Prepared> {
  const { numpy: np, nn, lax } = library;
  const parameters: JaxTree = {};
  for (const { path, values, shape } of await peerParameters(make)) {
    const [first = 1, second = 1, inputs = 1, outputs = 1] = shape;
    if (shape.length === 4) {
      const weight = filtersFirst(values, first * second, inputs, outputs);
      parameters[path] = jaxArray(library, weight, [outputs, inputs, first, second]);
    } else if (path === "fc.weight") {
      parameters[path] = jaxArray(library, transposed(values, first, second), [second, first]);
    } else {
      const isNorm = !path.startsWith("fc.");
      parameters[path] = jaxArray(library, values, isNorm ? [1, first, 1, 1] : shape);
    }
  }
  const loss = (p: JaxTree, x?: JaxArray, target?: JaxArray): JaxArray => {
    const at = (path: string): JaxArray => p[path] as JaxArray;
    const parts: Parts<JaxArray> = {
      conv(input, weight, kernelSize, stride) {
        const border = (kernelSize - 1) / 2;
        const padding = [
          [border, border],
          [border, border],
        ] as const;
        return lax.convGeneralDilated(input, at(weight), [stride, stride], padding);
      },
      batchNorm: (input, path) =>
        jaxBatchNorm(library, input, at(`${path}.weight`), at(`${path}.bias`)),
      relu: (input) => nn.relu(input),
      add: (a, b) => a.add(b),
      again: (input) => input.ref,
      head: (input) => np.matmul(np.mean(input, [2, 3]), at("fc.weight")).add(at("fc.bias")),
    };
    return nn
      .logSoftmax(logitsOf(parts, x as JaxArray), -1)
      .mul(target as JaxArray)
      .sum()
      .mul(-1 / labels.length);
  };
  const pixels = channelsFirst(images, labels.length, size * size, channels);
  const input = jaxArray(library, pixels, [labels.length, channels, size, size]);
  const target = jaxArray(library, oneHotRows(labels, classes), [labels.length, classes]);
  return jaxTraining(library, parameters, loss, [input, target], lr);
}

export async function tfjsResNet(
  library: TfjsLibrary,
  { make, images, labels, size, channels, lr }: TrainedResNet,
): Promise<Prepared> {
  const { tf } = library;
  const variables = new Map<string, TfTensor>();
  for (const { path, values, shape } of await peerParameters(make))
    variables.set(path, tf.variable(tf.tensor(values, shape)));
  const at = (path: string): TfTensor => variables.get(path) as TfTensor;
  const input = tf.tensor(images, [labels.length, size, size, channels]);
  const target = tf.tensor(oneHotRows(labels, classes), [labels.length, classes]);
  const parts: Parts<TfTensor> = {
    conv: (x, weight, kernelSize, stride) => tf.conv2d(x, at(weight), stride, (kernelSize - 1) / 2),
    batchNorm: (x, path) => tfjsBatchNorm(library, x, at(`${path}.weight`), at(`${path}.bias`)),
    relu: (x) => tf.relu(x),
    add: (a, b) => tf.add(a, b),
    again: (x) => x,
    head: (x) => tf.add(tf.matMul(tf.mean(x, [1, 2]), at("fc.weight"), false, true), at("fc.bias")),
  };
  const loss = (): TfTensor => tf.losses.softmaxCrossEntropy(target, logitsOf(parts, input));
  return tfjsTraining(library, [...variables.values()], loss, lr);
}
