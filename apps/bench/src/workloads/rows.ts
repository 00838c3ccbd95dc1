import { layerNorm } from "@halfstep/tensor";
import { operation } from "../lanes/halfstep.js";
import { type JaxArray, type JaxLibrary, jaxArray, jaxOperation } from "../lanes/jax.js";
import { onnxOperation } from "../lanes/onnx.js";
import type { Precision } from "../lanes/prepared.js";
import { tfjsOperation } from "../lanes/tfjs.js";
import { randomNumbers } from "../samples.js";
import { bytesOf, type Case, type Cost, type Workload } from "../workload.js";

const rows = 1024;
const columns = 1024;
const count = rows * columns;
const shape = [rows, columns];
const eps = 1e-5;

const input = () => randomNumbers(count, 2);
const gain = () => randomNumbers(columns, 1, 7);
const shift = () => randomNumbers(columns, 1, 8);
const tolerance = { float32: 1e-5, float16: 4e-3, bfloat16: 2e-2 };
const precisions: readonly Precision[] = ["float32", "float16", "bfloat16"];

/** Each element read and written once; a handful of operations each. */
const cost = (precision: Precision): Cost => ({
  operations: 6 * count,
  bytes: 2 * count * bytesOf(precision),
});

const rowOf = (index: number): number[] => {
  const start = index - (index % columns);
  return [...input().subarray(start, start + columns)];
};

const softmax: Case = {
  name: "softmax 1024²",
  isQuick: true,
  precisions,
  cost,
  tolerance,
  expected(index) {
    const row = rowOf(index);
    const most = Math.max(...row);
    const total = row.reduce((sum, x) => sum + Math.exp(x - most), 0);
    return Math.exp((row[index % columns] as number) - most) / total;
  },
  on: {
    async halfstep(library, dtype) {
      const place = await library.open();
      const x = place.runtime.tensor(input(), shape, { dtype });
      return operation(place, () => x.softmax());
    },
    async jax(library, precision) {
      const x = jaxArray(library, input(), shape, precision);
      const run = library.jit((a: JaxArray) => library.nn.softmax(a, -1));
      return jaxOperation(library, () => run(x.ref));
    },
    async tfjs(library) {
      const x = library.tf.tensor(input(), shape);
      return tfjsOperation(library, () => library.tf.softmax(x));
    },
    onnx: (library, precision) =>
      onnxOperation(
        library,
        { op: "Softmax", attributes: { axis: -1 }, inputs: { x: shape }, output: shape },
        { x: input() },
        precision,
      ),
  },
};

/** As jax.nn has no layer norm: mean, centred, variance, scaled. */
const jaxLayerNorm =
  ({ numpy: np }: JaxLibrary) =>
  (x: JaxArray, weight: JaxArray, bias: JaxArray): JaxArray => {
    const centred = x.ref.sub(np.mean(x, -1, { keepdims: true }));
    const variance = np.mean(centred.ref.mul(centred.ref), -1, { keepdims: true });
    return centred
      .mul(np.reciprocal(np.sqrt(variance.add(eps))))
      .mul(weight)
      .add(bias);
  };

const normalization: Case = {
  name: "layerNorm 1024²",
  isQuick: true,
  precisions,
  cost,
  tolerance,
  expected(index) {
    const row = rowOf(index);
    const column = index % columns;
    const mean = row.reduce((sum, x) => sum + x, 0) / columns;
    const variance = row.reduce((sum, x) => sum + (x - mean) ** 2, 0) / columns;
    const normal = ((row[column] as number) - mean) / Math.sqrt(variance + eps);
    return normal * (gain()[column] as number) + (shift()[column] as number);
  },
  on: {
    async halfstep(library, dtype) {
      const place = await library.open();
      const x = place.runtime.tensor(input(), shape, { dtype });
      const weight = place.runtime.tensor(gain(), [columns], { dtype });
      const bias = place.runtime.tensor(shift(), [columns], { dtype });
      return operation(place, () => layerNorm(x, columns, weight, bias, { eps }));
    },
    async jax(library, precision) {
      const x = jaxArray(library, input(), shape, precision);
      const weight = jaxArray(library, gain(), [columns], precision);
      const bias = jaxArray(library, shift(), [columns], precision);
      const run = library.jit(jaxLayerNorm(library));
      return jaxOperation(library, () => run(x.ref, weight.ref, bias.ref));
    },
    async tfjs(library) {
      const { tf } = library;
      const x = tf.tensor(input(), shape);
      const [weight, bias] = [tf.tensor(gain(), [columns]), tf.tensor(shift(), [columns])];
      return tfjsOperation(library, () => {
        const { mean, variance } = tf.moments(x, -1, true);
        const normal = tf.mul(tf.sub(x, mean), tf.rsqrt(tf.add(variance, eps)));
        return tf.add(tf.mul(normal, weight), bias);
      });
    },
    onnx: (library, precision) =>
      onnxOperation(
        library,
        {
          op: "LayerNormalization",
          attributes: { axis: -1, epsilon: eps },
          inputs: { x: shape, weight: [columns], bias: [columns] },
          output: shape,
        },
        { x: input(), weight: gain(), bias: shift() },
        precision,
      ),
  },
};

export const rowOperations: Workload = {
  name: "rows",
  title: "Operations over rows",
  level: "operation",
  cases: [softmax, normalization],
};
