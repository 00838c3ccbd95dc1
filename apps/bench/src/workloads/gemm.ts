import { operation } from "../lanes/halfstep.js";
import { jaxArray, jaxOperation } from "../lanes/jax.js";
import { onnxOperation } from "../lanes/onnx.js";
import { tfjsOperation } from "../lanes/tfjs.js";
import { randomNumbers } from "../samples.js";
import { bytesOf, type Case, usualTolerance, type Workload } from "../workload.js";

type Chosen = Pick<Case, "isQuick" | "isForHardware">;

function product(name: string, m: number, n: number, k: number, chosen: Chosen): Case {
  const left = () => randomNumbers(m * k);
  const right = () => randomNumbers(k * n, 0.9, 99);
  let operands: readonly [Float32Array, Float32Array] | undefined;
  return {
    name,
    ...chosen,
    precisions: ["float32", "float16", "bfloat16"],
    cost: (precision) => ({
      operations: 2 * m * n * k,
      bytes: (m * k + k * n + m * n) * bytesOf(precision),
    }),
    tolerance: usualTolerance,
    expected(index) {
      operands ??= [left(), right()];
      const [a, b] = operands;
      const [row, column] = [Math.floor(index / n), index % n];
      let sum = 0;
      for (let i = 0; i < k; i++) sum += (a[row * k + i] as number) * (b[i * n + column] as number);
      return sum;
    },
    on: {
      async halfstep(library, dtype) {
        const place = await library.open();
        const a = place.runtime.tensor(left(), [m, k], { dtype });
        const b = place.runtime.tensor(right(), [k, n], { dtype });
        return operation(place, () => a.matmul(b));
      },
      async jax(library, precision) {
        const a = jaxArray(library, left(), [m, k], precision);
        const b = jaxArray(library, right(), [k, n], precision);
        return jaxOperation(library, () => library.numpy.matmul(a.ref, b.ref));
      },
      async tfjs(library) {
        const { tf } = library;
        const [a, b] = [tf.tensor(left(), [m, k]), tf.tensor(right(), [k, n])];
        return tfjsOperation(library, () => tf.matMul(a, b));
      },
      torch: (library, precision) =>
        library.product(
          { data: left(), shape: [m, k] },
          { data: right(), shape: [k, n] },
          precision,
        ),
      onnx: (library, precision) =>
        onnxOperation(
          library,
          { op: "MatMul", inputs: { a: [m, k], b: [k, n] }, output: [m, n] },
          { a: left(), b: right() },
          precision,
        ),
    },
  };
}

const square = (size: number, chosen: Chosen): Case =>
  product(`${size}³`, size, size, size, chosen);

export const gemm: Workload = {
  name: "gemm",
  title: "Matrix product C = A·B",
  level: "operation",
  cases: [
    square(256, { isQuick: true }),
    square(512, { isQuick: false }),
    square(1024, { isQuick: true }),
    square(4096, { isQuick: true, isForHardware: true }),
    square(8192, { isQuick: false, isForHardware: true }),
    // A weight gradient: few outputs, long sums.
    product("64×64×16384", 64, 64, 16384, { isQuick: true }),
  ],
};
