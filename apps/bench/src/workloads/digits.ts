import { DigitsCnn } from "@halfstep/models";
import type { Runtime } from "@halfstep/tensor";
import { type JaxArray, type JaxTree, jaxArray, jaxBatchNorm, jaxTraining } from "../lanes/jax.js";
import type { Precision } from "../lanes/prepared.js";
import { type TfTensor, tfjsBatchNorm, tfjsTraining } from "../lanes/tfjs.js";
import {
  channelsFirst,
  cyclicLabels,
  filtersFirst,
  oneHotRows,
  randomNumbers,
  transposed,
} from "../samples.js";
import { bytesOf, type Case, trainingTolerance, type Workload } from "../workload.js";
import { trainModel } from "./train-model.js";

const batch = 128;
const classes = 10;
const lr = 1e-3;
const features = 3 * 3 * 64;
const parameterCount = 29_178;

/** 3×3 convolutions, each followed by batch norm, 2×2 max pooling and ReLU. */
const blocks = [
  { size: 28, inputs: 1, outputs: 16 },
  { size: 14, inputs: 16, outputs: 32 },
  { size: 7, inputs: 32, outputs: 64 },
] as const;

/** [3, 3, inputs, outputs] */
const filter = (i: number): Float32Array => {
  const { inputs, outputs } = blocks[i] as (typeof blocks)[number];
  return randomNumbers(9 * inputs * outputs, 1 / Math.sqrt(9 * inputs), 20 + i);
};
/** [features, classes]; features by row, column, channel */
const head = () => randomNumbers(features * classes, 1 / Math.sqrt(features), 30);
const images = () => randomNumbers(batch * 28 * 28, 1, 40);
const labels = cyclicLabels(batch, classes);

const multiplications = blocks.map(
  ({ size, inputs, outputs }) => batch * size * size * 9 * inputs * outputs,
);
const forward = 2 * (multiplications.reduce((a, b) => a + b, 0) + batch * features * classes);
const activations = blocks.reduce(
  (sum, { size, outputs }) => sum + batch * size * size * outputs,
  0,
);

const cost = (precision: Precision) => ({
  // The first layer needs no gradient of its input.
  operations: 3 * forward - 2 * (multiplications[0] as number),
  // Each convolution's output: written, normalised, pooled; the same in reverse.
  bytes: 28 * parameterCount + 6 * activations * bytesOf(precision),
});

/** The model of @halfstep/models with the parameters that all libraries start from. */
function digitsModel(runtime: Runtime): DigitsCnn {
  const model = new DigitsCnn(runtime, { seed: 0 });
  for (const [i, conv] of [model.conv1, model.conv2, model.conv3].entries())
    conv.weight.assign(runtime.tensor(filter(i), conv.weight.shape));
  model.fc.weight.assign(
    runtime.tensor(transposed(head(), features, classes), [classes, features]),
  );
  model.fc.bias?.assign(runtime.zeros([classes]));
  return model;
}

const step: Case = {
  name: "digits CNN, batch 128",
  isQuick: true,
  precisions: ["float32", "float16", "bfloat16"],
  items: { count: batch, unit: "images" },
  cost,
  tolerance: trainingTolerance,
  on: {
    async halfstep(library, precision) {
      const place = await library.open();
      const model = digitsModel(place.runtime);
      const input = place.runtime.tensor(images(), [batch, 28, 28, 1]);
      return trainModel(place, { model, input, labels, precision, lr });
    },
    torch: (library, precision) =>
      library.training({
        name: "digits",
        make: digitsModel,
        input: { data: images(), shape: [batch, 28, 28, 1] },
        labels,
        precision,
        lr,
      }),
    async jax(library) {
      const { numpy: np, nn, lax } = library;
      const parameters: JaxTree = {};
      for (const [i, { inputs, outputs }] of blocks.entries()) {
        const weight = filtersFirst(filter(i), 9, inputs, outputs);
        parameters[`w${i}`] = jaxArray(library, weight, [outputs, inputs, 3, 3]);
        parameters[`gain${i}`] = jaxArray(library, new Float32Array(outputs).fill(1), [
          1,
          outputs,
          1,
          1,
        ]);
        parameters[`shift${i}`] = np.zeros([1, outputs, 1, 1]);
      }
      // Features are by channel, row, column here.
      parameters.w = jaxArray(library, channelsFirst(head(), 1, 9, 64 * classes), [64, classes, 9])
        .transpose([0, 2, 1])
        .reshape([features, classes]);
      parameters.b = np.zeros([classes]);
      const loss = (p: JaxTree, x?: JaxArray, target?: JaxArray): JaxArray => {
        let h = x as JaxArray;
        for (const i of blocks.keys()) {
          h = lax.convGeneralDilated(h, p[`w${i}`] as JaxArray, [1, 1], "SAME");
          const [gain, shift] = [p[`gain${i}`], p[`shift${i}`]] as [JaxArray, JaxArray];
          h = jaxBatchNorm(library, h, gain, shift);
          h = nn.relu(lax.reduceWindow(h, np.max, [2, 2], [2, 2]));
        }
        const logits = np
          .matmul(h.reshape([batch, features]), p.w as JaxArray)
          .add(p.b as JaxArray);
        return nn
          .logSoftmax(logits, -1)
          .mul(target as JaxArray)
          .sum()
          .mul(-1 / batch);
      };
      const input = jaxArray(library, images(), [batch, 1, 28, 28]);
      const target = jaxArray(library, oneHotRows(labels, classes), [batch, classes]);
      return jaxTraining(library, parameters, loss, [input, target], lr);
    },
    async tfjs(library) {
      const { tf } = library;
      const layers = blocks.map(({ inputs, outputs }, i) => ({
        weight: tf.variable(tf.tensor(filter(i), [3, 3, inputs, outputs])),
        gain: tf.variable(tf.tensor(new Float32Array(outputs).fill(1), [outputs])),
        shift: tf.variable(tf.tensor(new Float32Array(outputs), [outputs])),
      }));
      const weight = tf.variable(tf.tensor(head(), [features, classes]));
      const bias = tf.variable(tf.tensor(new Float32Array(classes), [classes]));
      const input = tf.tensor(images(), [batch, 28, 28, 1]);
      const target = tf.tensor(oneHotRows(labels, classes), [batch, classes]);
      const loss = (): TfTensor => {
        let h = input;
        for (const { weight: w, gain, shift } of layers) {
          h = tf.conv2d(h, w, 1, "same");
          h = tf.relu(tf.maxPool(tfjsBatchNorm(library, h, gain, shift), 2, 2, "valid"));
        }
        const logits = tf.add(tf.matMul(tf.reshape(h, [batch, features]), weight), bias);
        return tf.losses.softmaxCrossEntropy(target, logits);
      };
      const variables = [
        ...layers.flatMap(({ weight: w, gain, shift }) => [w, gain, shift]),
        weight,
        bias,
      ];
      return tfjsTraining(library, variables, loss, lr);
    },
  },
};

export const digits: Workload = {
  name: "digits",
  title: "Training step of the digits CNN with Adam",
  level: "training",
  cases: [step],
};
