import { comparedSteps } from "./halfstep.js";
import { batchNormEps, type Update } from "./jax.js";
import type { Prepared } from "./prepared.js";

/** The part of a tfjs tensor that workloads use. */
export interface TfTensor {
  data(): Promise<ArrayLike<number>>;
  dispose(): void;
}

type Axis = number | readonly number[];

/** The part of TensorFlow.js that workloads use. */
interface Tf {
  getBackend(): string;
  tensor(values: Float32Array, shape: readonly number[], dtype?: string): TfTensor;
  tensor1d(values: ArrayLike<number>, dtype?: string): TfTensor;
  variable(initial: TfTensor, isTrainable?: boolean, name?: string): TfTensor;
  tidy<T>(fn: () => T): T;
  add(a: TfTensor, b: TfTensor | number): TfTensor;
  sub(a: TfTensor, b: TfTensor): TfTensor;
  mul(a: TfTensor, b: TfTensor | number): TfTensor;
  matMul(a: TfTensor, b: TfTensor, transposeA?: boolean, transposeB?: boolean): TfTensor;
  mean(x: TfTensor, axis: Axis): TfTensor;
  conv2d(
    x: TfTensor,
    filter: TfTensor,
    strides: number,
    padding: "same" | "valid" | number,
  ): TfTensor;
  maxPool(x: TfTensor, size: number, strides: number, padding: "same" | "valid"): TfTensor;
  softmax(x: TfTensor): TfTensor;
  relu(x: TfTensor): TfTensor;
  erf(x: TfTensor): TfTensor;
  tanh(x: TfTensor): TfTensor;
  transpose(x: TfTensor, order: readonly number[]): TfTensor;
  rsqrt(x: TfTensor): TfTensor;
  reshape(x: TfTensor, shape: readonly number[]): TfTensor;
  gather(x: TfTensor, indices: TfTensor): TfTensor;
  moments(
    x: TfTensor,
    axis: Axis,
    keepDimensions?: boolean,
  ): { mean: TfTensor; variance: TfTensor };
  readonly losses: { softmaxCrossEntropy(labels: TfTensor, logits: TfTensor): TfTensor };
  readonly train: {
    adam(lr: number, beta1: number, beta2: number, epsilon: number): TfOptimizer;
  };
}

interface TfOptimizer {
  minimize(loss: () => TfTensor, returnCost: true, variables: readonly TfTensor[]): TfTensor;
  applyGradients(gradients: Readonly<Record<string, TfTensor>>): void;
}

export interface TfjsLibrary {
  readonly tf: Tf;
  /** Submits what is encoded. */
  flush(): void;
}

export const tfjsOperation = ({ tf, flush }: TfjsLibrary, compute: () => TfTensor): Prepared => ({
  run() {
    const value = tf.tidy(compute);
    flush();
    value.dispose();
  },
  async result() {
    const value = tf.tidy(compute);
    const numbers = Float32Array.from(await value.data());
    value.dispose();
    return numbers;
  },
});

/** Batch norm of [batch, height, width, channels] by the batch itself. */
export function tfjsBatchNorm(
  { tf }: TfjsLibrary,
  x: TfTensor,
  weight: TfTensor,
  bias: TfTensor,
): TfTensor {
  const { mean, variance } = tf.moments(x, [0, 1, 2]);
  const normal = tf.mul(tf.sub(x, mean), tf.rsqrt(tf.add(variance, batchNormEps)));
  return tf.add(tf.mul(normal, weight), bias);
}

export function tfjsTraining(
  { tf, flush }: TfjsLibrary,
  variables: readonly TfTensor[],
  loss: () => TfTensor,
  lr: number,
): Prepared {
  const optimizer = tf.train.adam(lr, 0.9, 0.999, 1e-8);
  const step = () => optimizer.minimize(loss, true, variables);
  return {
    run() {
      const value = step();
      flush();
      value.dispose();
    },
    async result() {
      const losses: number[] = [];
      for (let i = 0; i < comparedSteps; i++) {
        const value = step();
        losses.push((await value.data())[0] as number);
        value.dispose();
      }
      return Float32Array.from(losses);
    },
  };
}

/** Adam alone. `read` makes so many updates and gives the parameters. */
export function tfjsAdamOnly(
  { tf, flush }: TfjsLibrary,
  updates: readonly Update[],
  lr: number,
): Pick<Prepared, "run"> & { read(count: number): Promise<ArrayLike<number>[]> } {
  const optimizer = tf.train.adam(lr, 0.9, 0.999, 1e-8);
  const variables = updates.map(([values, , shape], i) =>
    tf.variable(tf.tensor(values, shape), true, `w${i}`),
  );
  const gradients = Object.fromEntries(
    updates.map(([, gradient, shape], i) => [`w${i}`, tf.tensor(gradient, shape)]),
  );
  const step = () => tf.tidy(() => optimizer.applyGradients(gradients));
  return {
    run() {
      step();
      flush();
    },
    async read(count) {
      for (let i = 0; i < count; i++) step();
      return Promise.all(variables.map((variable) => variable.data()));
    },
  };
}
