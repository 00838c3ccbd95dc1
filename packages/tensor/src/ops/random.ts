import type { DType, Launch } from "@halfstep/device";
import * as kernels from "@halfstep/kernels";
import { checked } from "../arguments/arguments.js";
import * as kinds from "../arguments/kinds.js";
import * as ownKinds from "../arguments/own-kinds.js";
import { defineOp, type Op, type Operand, type TensorSpec } from "../dispatch/op.js";
import type { Storage } from "../record/storage.js";
import type { Runtime } from "../tensor/runtime.js";
import type { Tensor } from "../tensor/tensor.js";
import { floating } from "./floating.js";
import type { Generator } from "./generator.js";

export interface Dropout {
  readonly p: number;
  readonly source: kernels.RandomSource;
}

/** The mask is never stored: each kernel that needs it draws it again. */
export const dropoutOp: Op<Dropout> = defineOp<Dropout>({
  name: "dropout",
  castPolicy: "none",
  shape: ([x]) => [floating("dropout", x as TensorSpec)],
  forward({ target, inputs, outputs, attributes: { p, source } }) {
    const [input, out] = [inputs[0] as Operand, outputs[0] as Operand];
    target.launch(kernels.dropout({ input, out }, source, p));
  },
  backward: ({ gradients, attributes }) => [dropoutOp.apply([gradients[0] as Tensor], attributes)],
});

/** Options of {@link dropout}. */
export interface DropoutOptions {
  /** The probability with which an element becomes 0; the others are divided by 1 − p. Default 0.5. */
  readonly p?: number;
  /** Where random numbers come from. */
  readonly generator: Generator;
}

/** x with elements dropped at random, as in training. The same mask on every device, bit for bit. */
export const dropout: (x: Tensor, options: DropoutOptions) => Tensor = checked(
  "dropout",
  { x: kinds.tensor, options: ownKinds.dropout },
  (x: Tensor, { p = 0.5, generator }: DropoutOptions): Tensor => {
    return dropoutOp.apply([x], drawDropout(x.runtime, x.size, { p, generator }));
  },
);

/** Takes the words for a tensor of so many elements, which may be dropped from more than once. */
export function drawDropout(
  runtime: Runtime,
  elements: number,
  { p = 0.5, generator }: DropoutOptions,
): Dropout {
  probability("dropout", p);
  return { p, source: generator.take(runtime, elements) };
}

function probability(op: string, p: number): void {
  if (!(p >= 0 && p <= 1)) throw new RangeError(`${op}: p is a probability from 0 to 1, not ${p}`);
}

/** Options of all random tensors. */
export interface RandomOptions {
  /** Where random numbers come from. */
  readonly generator: Generator;
  /** Default float32. */
  readonly dtype?: DType;
}

const randomKinds = (options: kinds.ParameterKinds): kinds.ParameterKinds => ({
  runtime: kinds.runtime,
  shape: kinds.integers,
  options: kinds.options({
    generator: kinds.generator,
    dtype: kinds.optional(kinds.dtype),
    ...options,
  }),
});

function drawn(
  runtime: Runtime,
  shape: readonly number[],
  { generator, dtype = "float32" }: RandomOptions,
  launchOf: (out: Operand, source: kernels.RandomSource) => Launch<Storage>,
): Tensor {
  floating("a random tensor", { shape, dtype });
  return made(runtime, shape, dtype, (out) => launchOf(out, generator.take(runtime, out.length)));
}

/** A tensor without operands, which a launch fills. */
export function made(
  runtime: Runtime,
  shape: readonly number[],
  dtype: DType,
  launchOf: (out: Operand) => Launch<Storage>,
): Tensor {
  runtime.recorder.beforeOp();
  const result = runtime.recorder.result(shape, dtype);
  runtime.recorder.scratchTarget.launch(launchOf(result.operand()));
  return result;
}

/** Options of {@link rand}. */
export interface UniformOptions extends RandomOptions {
  /** Default 0. */
  readonly low?: number;
  /** Default 1; not among the numbers drawn in float32. */
  readonly high?: number;
}

/** Uniform numbers from [low, high). */
export const rand: (runtime: Runtime, shape: readonly number[], options: UniformOptions) => Tensor =
  checked(
    "rand",
    randomKinds({ low: kinds.optional(kinds.number), high: kinds.optional(kinds.number) }),
    (
      runtime: Runtime,
      shape: readonly number[],
      { low = 0, high = 1, ...options }: UniformOptions,
    ): Tensor => {
      if (!(low <= high))
        throw new RangeError(`rand: low is ${low}, and high ${high}: it must not be below`);
      return drawn(runtime, shape, options, (out, source) =>
        kernels.uniform(out, source, { low, high }),
      );
    },
  );

/** Options of {@link randn}. */
export interface NormalOptions extends RandomOptions {
  /** Default 0. */
  readonly mean?: number;
  /** Standard deviation. Default 1. */
  readonly deviation?: number;
}

/** Numbers of the normal distribution. */
export const randn: (runtime: Runtime, shape: readonly number[], options: NormalOptions) => Tensor =
  checked(
    "randn",
    randomKinds({
      mean: kinds.optional(kinds.number),
      deviation: kinds.optional(kinds.nonNegative),
    }),
    (
      runtime: Runtime,
      shape: readonly number[],
      { mean = 0, deviation = 1, ...options }: NormalOptions,
    ): Tensor =>
      drawn(runtime, shape, options, (out, source) =>
        kernels.normal(out, source, { mean, deviation }),
      ),
  );

/** Options of {@link bernoulli}. */
export interface BernoulliOptions extends RandomOptions {
  /** The probability of a 1. */
  readonly p: number;
}

/** 1 with probability p, else 0. */
export const bernoulli: (
  runtime: Runtime,
  shape: readonly number[],
  options: BernoulliOptions,
) => Tensor = checked(
  "bernoulli",
  randomKinds({ p: kinds.number }),
  (runtime: Runtime, shape: readonly number[], { p, ...options }: BernoulliOptions): Tensor => {
    probability("bernoulli", p);
    return drawn(runtime, shape, options, (out, source) => kernels.bernoulli(out, source, p));
  },
);
