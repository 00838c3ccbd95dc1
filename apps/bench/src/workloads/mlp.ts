import { Mlp } from "@halfstep/models";
import type { Runtime } from "@halfstep/tensor";
import type { HalfstepLibrary } from "../lanes/halfstep.js";
import { type JaxArray, type JaxTree, jaxArray, jaxTraining } from "../lanes/jax.js";
import type { Precision, Prepared } from "../lanes/prepared.js";
import { type TfTensor, tfjsTraining } from "../lanes/tfjs.js";
import { cyclicLabels, oneHotRows, randomNumbers, transposed } from "../samples.js";
import { bytesOf, type Case, trainingTolerance, type Workload } from "../workload.js";
import { trainModel } from "./train-model.js";

/** Features of each layer, input and output included, and the rows of a batch. */
export interface MlpSize {
  readonly sizes: readonly [number, number, ...number[]];
  readonly batch: number;
}

const lr = 1e-3;
const classes = 10;

interface Layer {
  readonly inputs: number;
  readonly outputs: number;
  /** [inputs, outputs] */
  readonly weight: Float32Array;
}

const layersOf = ({ sizes }: MlpSize): Layer[] =>
  sizes.slice(1).map((outputs, i) => {
    const inputs = sizes[i] as number;
    const weight = randomNumbers(inputs * outputs, 1 / Math.sqrt(inputs), 10 + i);
    return { inputs, outputs, weight };
  });

const batchOf = ({ sizes: [features], batch }: MlpSize) => ({
  x: randomNumbers(batch * features),
  labels: cyclicLabels(batch, classes),
});

export const parametersOf = ({ sizes }: MlpSize): number =>
  sizes.slice(1).reduce((sum, outputs, i) => sum + ((sizes[i] as number) + 1) * outputs, 0);

/** Forward, two products backward in each layer but the first, which needs no gradient of its input; Adam's seven arrays. */
export function mlpCost(
  size: MlpSize,
  precision: Precision,
): { operations: number; bytes: number } {
  const { sizes, batch } = size;
  const products = sizes.slice(1).map((outputs, i) => 2 * batch * outputs * (sizes[i] as number));
  const forward = products.reduce((sum, operations) => sum + operations, 0);
  const activations = batch * sizes.reduce((sum, features) => sum + features, 0);
  return {
    operations: 3 * forward - (products[0] as number),
    bytes:
      parametersOf(size) * (7 * 4 + 2 * bytesOf(precision)) + 3 * activations * bytesOf(precision),
  };
}

/** The model of @halfstep/models with the parameters that all libraries start from. */
function mlpModel(runtime: Runtime, size: MlpSize): Mlp {
  const model = new Mlp(runtime, { sizes: size.sizes, seed: 0 });
  for (const [i, { inputs, outputs, weight }] of layersOf(size).entries()) {
    const layer = model.layers[i] as Mlp["layers"][number];
    // torch keeps weights as [outputs, inputs].
    layer.weight.assign(runtime.tensor(transposed(weight, inputs, outputs), [outputs, inputs]));
    layer.bias?.assign(runtime.zeros([outputs]));
  }
  return model;
}

export async function halfstepMlp(
  library: HalfstepLibrary,
  size: MlpSize,
  precision: Precision,
): Promise<Prepared> {
  const place = await library.open();
  const { x, labels } = batchOf(size);
  const model = mlpModel(place.runtime, size);
  const input = place.runtime.tensor(x, [size.batch, size.sizes[0]]);
  return trainModel(place, { model, input, labels, precision, lr });
}

/** One training step of a multi-layer perceptron, in every library that trains. */
export function mlpCase(name: string, size: MlpSize, isQuick: boolean): Case {
  const { sizes, batch } = size;
  return {
    name,
    isQuick,
    precisions: ["float32", "float16", "bfloat16"],
    items: { count: batch, unit: "images" },
    cost: (precision) => mlpCost(size, precision),
    tolerance: trainingTolerance,
    on: {
      halfstep: (library, precision) => halfstepMlp(library, size, precision),
      torch(library, precision) {
        const { x, labels } = batchOf(size);
        return library.training({
          name: "mlp",
          make: (runtime) => mlpModel(runtime, size),
          input: { data: x, shape: [batch, sizes[0]] },
          labels,
          precision,
          lr,
        });
      },
      async jax(library) {
        const { numpy: np, nn } = library;
        const layers = layersOf(size);
        const parameters: JaxTree = {};
        for (const [i, { inputs, outputs, weight }] of layers.entries()) {
          parameters[`w${i}`] = jaxArray(library, weight, [inputs, outputs]);
          parameters[`b${i}`] = np.zeros([outputs]);
        }
        const { x, labels } = batchOf(size);
        const loss = (p: JaxTree, input?: JaxArray, target?: JaxArray): JaxArray => {
          let h = input as JaxArray;
          for (const i of layers.keys()) {
            h = np.matmul(h, p[`w${i}`] as JaxArray).add(p[`b${i}`] as JaxArray);
            if (i < layers.length - 1) h = nn.relu(h);
          }
          return nn
            .logSoftmax(h, -1)
            .mul(target as JaxArray)
            .sum()
            .mul(-1 / batch);
        };
        const target = jaxArray(library, oneHotRows(labels, classes), [batch, classes]);
        const input = jaxArray(library, x, [batch, sizes[0]]);
        return jaxTraining(library, parameters, loss, [input, target], lr);
      },
      async tfjs(library) {
        const { tf } = library;
        const layers = layersOf(size).map(({ inputs, outputs, weight }) => ({
          weight: tf.variable(tf.tensor(weight, [inputs, outputs])),
          bias: tf.variable(tf.tensor(new Float32Array(outputs), [outputs])),
        }));
        const { x, labels } = batchOf(size);
        const input = tf.tensor(x, [batch, sizes[0]]);
        const target = tf.tensor(oneHotRows(labels, classes), [batch, classes]);
        const loss = (): TfTensor => {
          let h = input;
          for (const [i, { weight, bias }] of layers.entries()) {
            h = tf.add(tf.matMul(h, weight), bias);
            if (i < layers.length - 1) h = tf.relu(h);
          }
          return tf.losses.softmaxCrossEntropy(target, h);
        };
        const variables = layers.flatMap(({ weight, bias }) => [weight, bias]);
        return tfjsTraining(library, variables, loss, lr);
      },
    },
  };
}

export const mlp: Workload = {
  name: "mlp",
  title: "Training step of an MLP with Adam",
  level: "training",
  cases: [mlpCase("784-512-512-10, batch 128", { sizes: [784, 512, 512, 10], batch: 128 }, true)],
};
