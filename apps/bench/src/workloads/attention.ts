import { scaledDotProductAttention, type Tensor } from "@halfstep/tensor";
import { operation } from "../lanes/halfstep.js";
import { type JaxArray, jaxArray, jaxOperation } from "../lanes/jax.js";
import { type TfTensor, tfjsOperation } from "../lanes/tfjs.js";
import { randomNumbers } from "../samples.js";
import { bytesOf, type Case, type Workload } from "../workload.js";

const heads = 8;
const length = 512;
const size = 64;
const count = heads * length * size;
const shape = [1, heads, length, size];
const operands = () =>
  [randomNumbers(count, 1, 1), randomNumbers(count, 1, 2), randomNumbers(count, 1, 3)] as const;

/** [1, heads, length, size] as jax.nn wants it: [1, length, heads, size]. */
const headsInside = [0, 2, 1, 3] as const;

const forward: Case = {
  name: "8 heads × 512 × 64",
  isQuick: false,
  precisions: ["float32", "float16", "bfloat16"],
  cost: (precision) => ({
    operations: 4 * heads * length * length * size,
    bytes: 4 * count * bytesOf(precision),
  }),
  tolerance: { float32: 1e-5, float16: 1e-2, bfloat16: 4e-2 },
  expected(index) {
    const [query, key, value] = operands();
    const start = index - (index % size);
    const head = start - (start % (length * size));
    const scores = Array.from({ length }, (_, row) => {
      let sum = 0;
      for (let i = 0; i < size; i++)
        sum += (query[start + i] as number) * (key[head + row * size + i] as number);
      return sum / Math.sqrt(size);
    });
    const most = Math.max(...scores);
    const weights = scores.map((score) => Math.exp(score - most));
    const total = weights.reduce((sum, weight) => sum + weight, 0);
    return weights.reduce(
      (sum, weight, row) =>
        sum + (weight / total) * (value[head + row * size + (index % size)] as number),
      0,
    );
  },
  on: {
    async halfstep(library, dtype) {
      const place = await library.open();
      const [query, key, value] = operands().map((values) =>
        place.runtime.tensor(values, shape, { dtype }),
      ) as [Tensor, Tensor, Tensor];
      return operation(place, () => scaledDotProductAttention(query, key, value));
    },
    async jax(library, precision) {
      const [query, key, value] = operands().map((values) =>
        jaxArray(library, values, shape, precision).transpose(headsInside),
      ) as [JaxArray, JaxArray, JaxArray];
      const run = library.jit((q: JaxArray, k: JaxArray, v: JaxArray) =>
        library.nn.dotProductAttention(q, k, v),
      );
      return jaxOperation(library, () => run(query.ref, key.ref, value.ref), headsInside);
    },
    async tfjs(library) {
      const { tf } = library;
      const [query, key, value] = operands().map((values) => tf.tensor(values, shape)) as [
        TfTensor,
        TfTensor,
        TfTensor,
      ];
      return tfjsOperation(library, () =>
        tf.matMul(tf.softmax(tf.mul(tf.matMul(query, key, false, true), size ** -0.5)), value),
      );
    },
  },
};

export const attention: Workload = {
  name: "attention",
  title: "Scaled dot-product attention, forward",
  level: "operation",
  cases: [forward],
};
