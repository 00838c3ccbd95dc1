import { operation } from "../lanes/halfstep.js";
import { type JaxArray, jaxArray, jaxOperation } from "../lanes/jax.js";
import { onnxOperation } from "../lanes/onnx.js";
import type { Precision } from "../lanes/prepared.js";
import { tfjsOperation } from "../lanes/tfjs.js";
import { randomNumbers } from "../samples.js";
import { bytesOf, type Case, usualTolerance, type Workload } from "../workload.js";

const count = 4 * 2 ** 20;
const left = () => randomNumbers(count);
const right = () => randomNumbers(count, 0.5, 99);
const precisions: readonly Precision[] = ["float32", "float16", "bfloat16"];
const at = (values: () => Float32Array) => {
  let made: Float32Array | undefined;
  return (index: number): number => {
    made ??= values();
    return made[index] as number;
  };
};
const a = at(left);
const b = at(right);

const sum: Case = {
  name: "add 4 Mi",
  isQuick: true,
  precisions,
  cost: (precision) => ({ operations: count, bytes: 3 * count * bytesOf(precision) }),
  tolerance: usualTolerance,
  expected: (index) => a(index) + b(index),
  on: {
    async halfstep(library, dtype) {
      const place = await library.open();
      const x = place.runtime.tensor(left(), [count], { dtype });
      const y = place.runtime.tensor(right(), [count], { dtype });
      return operation(place, () => x.add(y));
    },
    async jax(library, precision) {
      const x = jaxArray(library, left(), [count], precision);
      const y = jaxArray(library, right(), [count], precision);
      return jaxOperation(library, () => library.numpy.add(x.ref, y.ref));
    },
    async tfjs(library) {
      const { tf } = library;
      const [x, y] = [tf.tensor(left(), [count]), tf.tensor(right(), [count])];
      return tfjsOperation(library, () => tf.add(x, y));
    },
    onnx: (library, precision) =>
      onnxOperation(
        library,
        { op: "Add", inputs: { x: [count], y: [count] }, output: [count] },
        { x: left(), y: right() },
        precision,
      ),
  },
};

/** Four ops that a planner or a jit makes one kernel of: relu(a · b + a) · b. */
const chain: Case = {
  name: "relu(a·b + a)·b 4 Mi",
  isQuick: false,
  precisions,
  cost: (precision) => ({ operations: 4 * count, bytes: 3 * count * bytesOf(precision) }),
  tolerance: usualTolerance,
  expected: (index) => Math.max(0, a(index) * b(index) + a(index)) * b(index),
  on: {
    async halfstep(library, dtype) {
      const place = await library.open();
      const x = place.runtime.tensor(left(), [count], { dtype });
      const y = place.runtime.tensor(right(), [count], { dtype });
      return operation(place, () => x.mul(y).add(x).relu().mul(y));
    },
    async jax(library, precision) {
      const x = jaxArray(library, left(), [count], precision);
      const y = jaxArray(library, right(), [count], precision);
      const run = library.jit((p: JaxArray, q: JaxArray) =>
        library.nn.relu(p.ref.mul(q.ref).add(p)).mul(q),
      );
      return jaxOperation(library, () => run(x.ref, y.ref));
    },
    async tfjs(library) {
      const { tf } = library;
      const [x, y] = [tf.tensor(left(), [count]), tf.tensor(right(), [count])];
      return tfjsOperation(library, () => tf.mul(tf.relu(tf.add(tf.mul(x, y), x)), y));
    },
  },
};

export const elementwise: Workload = {
  name: "elementwise",
  title: "Elementwise operations",
  level: "operation",
  cases: [sum, chain],
};
