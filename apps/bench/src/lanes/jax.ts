import { comparedSteps } from "./halfstep.js";
import type { Precision, Prepared } from "./prepared.js";

/** The part of a jax-js array that workloads use. Each use of an array consumes it; `ref` is a use that does not. */
export interface JaxArray {
  readonly ref: JaxArray;
  reshape(shape: readonly number[]): JaxArray;
  astype(dtype: unknown): JaxArray;
  add(other: JaxArray | number): JaxArray;
  sub(other: JaxArray | number): JaxArray;
  mul(other: JaxArray | number): JaxArray;
  div(other: JaxArray | number): JaxArray;
  sum(axis?: number | readonly number[]): JaxArray;
  transpose(order?: readonly number[]): JaxArray;
  data(): Promise<ArrayLike<number>>;
  /** Nothing is computed before this, or a read. */
  blockUntilReady(): Promise<unknown>;
  dispose(): void;
}

export type JaxTree = Record<string, JaxArray>;
type Fn<Args extends readonly unknown[], R> = (...args: Args) => R;
type Axis = number | readonly number[];

/** The part of jax-js that workloads use. */
export interface JaxLibrary {
  readonly numpy: {
    readonly float16: unknown;
    readonly float32: unknown;
    array(values: Float32Array): JaxArray;
    zeros(shape: readonly number[]): JaxArray;
    add(a: JaxArray, b: JaxArray): JaxArray;
    matmul(a: JaxArray, b: JaxArray): JaxArray;
    mean(x: JaxArray, axis: Axis, options?: { keepdims: boolean }): JaxArray;
    max(x: JaxArray): JaxArray;
    sqrt(x: JaxArray): JaxArray;
    reciprocal(x: JaxArray): JaxArray;
  };
  readonly nn: {
    relu(x: JaxArray): JaxArray;
    gelu(x: JaxArray, options?: { approximate: boolean }): JaxArray;
    softmax(x: JaxArray, axis: number): JaxArray;
    logSoftmax(x: JaxArray, axis: number): JaxArray;
    dotProductAttention(
      query: JaxArray,
      key: JaxArray,
      value: JaxArray,
      options?: { isCausal?: boolean },
    ): JaxArray;
  };
  readonly lax: {
    convGeneralDilated(
      x: JaxArray,
      weight: JaxArray,
      strides: readonly number[],
      padding: string | readonly (readonly [number, number])[],
    ): JaxArray;
    reduceWindow(
      x: JaxArray,
      reduce: (window: JaxArray) => JaxArray,
      window: readonly number[],
      strides: readonly number[],
    ): JaxArray;
  };
  jit<Args extends readonly unknown[], R>(fn: Fn<Args, R>): Fn<Args, R>;
  valueAndGrad<Args extends readonly unknown[]>(
    fn: Fn<[JaxTree, ...Args], JaxArray>,
  ): Fn<[JaxTree, ...Args], [JaxArray, JaxTree]>;
  readonly tree: {
    ref<T>(tree: T): T;
  };
}

/** An array on the device, in the precision that is asked for. */
export function jaxArray(
  { numpy }: JaxLibrary,
  values: Float32Array,
  shape: readonly number[],
  precision: Precision = "float32",
): JaxArray {
  const array = numpy.array(values).reshape(shape);
  return precision === "float16" ? array.astype(numpy.float16) : array;
}

/** Batch norm of [batch, channels, height, width] by the batch itself, with weight and bias [1, channels, 1, 1]. */
export function jaxBatchNorm(
  { numpy: np }: JaxLibrary,
  x: JaxArray,
  weight: JaxArray,
  bias: JaxArray,
): JaxArray {
  const centred = x.ref.sub(np.mean(x, [0, 2, 3], { keepdims: true }));
  const variance = np.mean(centred.ref.mul(centred.ref), [0, 2, 3], { keepdims: true });
  return centred
    .mul(np.reciprocal(np.sqrt(variance.add(batchNormEps))))
    .mul(weight)
    .add(bias);
}

/** The epsilon that batch norms add to the variance. */
export const batchNormEps = 1e-5;

/** Calls that may be under way before the next one waits. */
const maxInFlight = 4;

/** Starts computations and waits for them late, so that the device is never idle. */
function pipelined(compute: () => JaxArray): Pick<Prepared, "run" | "drain"> {
  const underWay: Promise<void>[] = [];
  return {
    async run() {
      if (underWay.length >= maxInFlight) await underWay.shift();
      const value = compute();
      underWay.push(value.blockUntilReady().then(() => value.dispose()));
    },
    async drain() {
      await Promise.all(underWay.splice(0));
    },
  };
}

export const jaxOperation = (
  { numpy }: JaxLibrary,
  compute: () => JaxArray,
  order?: readonly number[],
): Prepared => ({
  ...pipelined(compute),
  async result() {
    const value = compute().astype(numpy.float32);
    return Float32Array.from(await (order ? value.transpose(order) : value).data());
  },
});

interface AdamState {
  readonly parameters: JaxTree;
  readonly first: JaxTree;
  readonly second: JaxTree;
}

const betas = [0.9, 0.999] as const;

/** Adam for a `jit`, as jax-js publishes no optimizers. Corrections of the bias are arguments, so that steps share a program. */
function adamUpdate(
  { numpy: np }: JaxLibrary,
  { parameters, first, second }: AdamState,
  gradients: JaxTree,
  [correction1, correction2]: readonly [JaxArray, JaxArray],
  lr: number,
): AdamState {
  const next: Record<keyof AdamState, JaxTree> = { parameters: {}, first: {}, second: {} };
  for (const name of Object.keys(parameters)) {
    const [g, p] = [gradients[name] as JaxArray, parameters[name] as JaxArray];
    const m = (first[name] as JaxArray).mul(betas[0]).add(g.ref.mul(1 - betas[0]));
    const v = (second[name] as JaxArray).mul(betas[1]).add(g.ref.mul(g).mul(1 - betas[1]));
    const root = np.sqrt(v.ref.mul(correction2.ref)).add(1e-8);
    next.parameters[name] = p.sub(m.ref.mul(correction1.ref).mul(lr).div(root));
    next.first[name] = m;
    next.second[name] = v;
  }
  correction1.dispose();
  correction2.dispose();
  return next;
}

const initialState = (parameters: JaxTree): AdamState => {
  const zeros = (): JaxTree =>
    Object.fromEntries(Object.entries(parameters).map(([name, p]) => [name, p.ref.mul(0)]));
  return { first: zeros(), second: zeros(), parameters };
};

const corrections = ({ numpy: np }: JaxLibrary, count: number): [JaxArray, JaxArray] => [
  np.array(Float32Array.of(1 / (1 - betas[0] ** count))),
  np.array(Float32Array.of(1 / (1 - betas[1] ** count))),
];

/** A whole training step with Adam in one `jit`: the fastest that jax-js offers. */
export function jaxTraining(
  jax: JaxLibrary,
  initial: JaxTree,
  lossOf: (parameters: JaxTree, ...batch: JaxArray[]) => JaxArray,
  batch: readonly JaxArray[],
  lr: number,
): Prepared {
  let state = initialState(initial);
  const step = jax.jit(
    (
      before: AdamState,
      correction1: JaxArray,
      correction2: JaxArray,
      ...inputs: JaxArray[]
    ): [JaxArray, AdamState] => {
      const parameters = jax.tree.ref(before.parameters);
      const [loss, gradients] = jax.valueAndGrad(lossOf)(parameters, ...inputs);
      return [loss, adamUpdate(jax, before, gradients, [correction1, correction2], lr)];
    },
  );
  let count = 0;
  const next = (): JaxArray => {
    const [loss, after] = step(state, ...corrections(jax, ++count), ...batch.map(({ ref }) => ref));
    state = after;
    return loss;
  };
  return {
    ...pipelined(next),
    async result() {
      const losses: number[] = [];
      for (let i = 0; i < comparedSteps; i++) losses.push((await next().data())[0] as number);
      return Float32Array.from(losses);
    },
  };
}

/** Values, gradient and shape of a parameter. */
export type Update = readonly [
  values: Float32Array,
  gradient: Float32Array,
  shape: readonly number[],
];

/** Adam alone, in one `jit`. `read` makes so many updates and gives the parameters. */
export function jaxAdam(
  jax: JaxLibrary,
  updates: readonly Update[],
  lr: number,
): Pick<Prepared, "run" | "drain"> & { read(count: number): Promise<ArrayLike<number>[]> } {
  const treeOf = (pick: 0 | 1): JaxTree =>
    Object.fromEntries(updates.map((u, i) => [`w${i}`, jaxArray(jax, u[pick], u[2])]));
  let state = initialState(treeOf(0));
  const gradients = treeOf(1);
  const step = jax.jit((before: AdamState, g: JaxTree, c1: JaxArray, c2: JaxArray) =>
    adamUpdate(jax, before, g, [c1, c2], lr),
  );
  let count = 0;
  const next = (): JaxArray => {
    state = step(state, jax.tree.ref(gradients), ...corrections(jax, ++count));
    // All outputs of a jit become ready together.
    return (state.parameters.w0 as JaxArray).ref;
  };
  return {
    ...pipelined(next),
    async read(times) {
      for (let i = 0; i < times; i++) next().dispose();
      return Promise.all(Object.values(state.parameters).map(({ ref }) => ref.data()));
    },
  };
}
