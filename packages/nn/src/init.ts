import { type Generator, ShapeError } from "@halfstep/tensor/functional";
import { shown } from "./arguments.js";

/** Connections into and out of one unit. */
export interface Fans {
  readonly fanIn: number;
  readonly fanOut: number;
}

/** Fans of a weight [out, in] of a linear layer, or [..., in, out] of a convolution, whose window has the sizes before these. */
export function fansOf(shape: readonly number[]): Fans {
  if (shape.length < 2)
    throw new ShapeError(
      `fans are known for weights [out, in] and [...window, in, out], not for [${shape}]`,
    );
  if (shape.length === 2) {
    const [fanOut, fanIn] = shape as [number, number];
    return { fanIn, fanOut };
  }
  const field = shape.slice(0, -2).reduce((a, b) => a * b, 1);
  const [inChannels, outChannels] = shape.slice(-2) as [number, number];
  return { fanIn: field * inChannels, fanOut: field * outChannels };
}

/** The function after a layer, which decides the scale of its initial weights. */
export type Nonlinearity = "linear" | "sigmoid" | "tanh" | "relu" | "leakyRelu" | "selu";

const gains: Readonly<Record<Nonlinearity, (a: number) => number>> = {
  linear: () => 1,
  sigmoid: () => 1,
  tanh: () => 5 / 3,
  relu: () => Math.SQRT2,
  leakyRelu: (a) => Math.sqrt(2 / (1 + a * a)),
  selu: () => 3 / 4,
};

/**
 * The factor by which a nonlinearity reduces the standard deviation: torch.nn.init.calculate_gain. `a` is the slope of
 * leakyRelu.
 *
 * @throws RangeError for another nonlinearity, or a slope that is no number
 */
export function calculateGain(nonlinearity: Nonlinearity, a = 0.01): number {
  requireOneOf("nonlinearity", nonlinearity, Object.keys(gains));
  if (!Number.isFinite(a))
    throw new RangeError(`a, the slope of leakyRelu, is ${shown(a)}; pass a number`);
  return gains[nonlinearity](a);
}

function requireOneOf(name: string, value: unknown, known: readonly string[]): void {
  if (!known.includes(value as string))
    throw new RangeError(
      `${name} is ${shown(value)}; pass ${known.map((each) => JSON.stringify(each)).join(" or ")}`,
    );
}

/** Makes the initial values of a parameter. */
export type Initializer = (shape: readonly number[], generator: Generator) => Float32Array;

/** Initializers of a layer's parameters, where they are not torch's default. */
export interface InitOptions {
  readonly weightInit?: Initializer;
  readonly biasInit?: Initializer;
}

function sample(shape: readonly number[], draw: () => number): Float32Array {
  const values = new Float32Array(shape.reduce((a, b) => a * b, 1));
  // Float32Array.from() takes several times as long.
  for (let i = 0; i < values.length; i++) values[i] = draw();
  return values;
}

/**
 * Uniform numbers from [low, high), in float32.
 *
 * @throws RangeError for bounds that are no numbers, or in the wrong order
 */
export function uniform(
  shape: readonly number[],
  generator: Generator,
  low = 0,
  high = 1,
): Float32Array {
  if (!(Number.isFinite(low) && Number.isFinite(high) && low <= high))
    throw new RangeError(
      `uniform(shape, generator, low?, high?): low is ${shown(low)} and high is ${shown(high)}; pass numbers with low ≤ high`,
    );
  return sample(shape, () => low + (high - low) * generator.uniform());
}

/**
 * Normal numbers, in float32.
 *
 * @throws RangeError for a mean that is no number, and a deviation that is no number from 0 on
 */
export function normal(
  shape: readonly number[],
  generator: Generator,
  mean = 0,
  std = 1,
): Float32Array {
  if (!(Number.isFinite(mean) && Number.isFinite(std) && std >= 0))
    throw new RangeError(
      `normal(shape, generator, mean?, std?): mean is ${shown(mean)} and std is ${shown(std)}; pass numbers with std ≥ 0`,
    );
  return sample(shape, () => mean + std * generator.normal());
}

/** Fills with zeros. */
export const zeros: Initializer = (shape) => new Float32Array(shape.reduce((a, b) => a * b, 1));

/** Options of initialisation after Kaiming He. */
export interface KaimingOptions {
  /** Slope of leakyRelu. Default 0. */
  readonly a?: number;
  /** The variance to preserve: that of the forward pass or of the backward pass. Default "fanIn". */
  readonly mode?: "fanIn" | "fanOut";
  /** Default "leakyRelu", which with `a` 0 is relu. */
  readonly nonlinearity?: Nonlinearity;
}

function kaimingStd(shape: readonly number[], options: KaimingOptions): number {
  const { a = 0, mode = "fanIn", nonlinearity = "leakyRelu", ...others } = options;
  for (const name of Object.keys(others))
    throw new RangeError(`there is no option ${name}; pass any of a, mode, nonlinearity`);
  requireOneOf("mode", mode, ["fanIn", "fanOut"]);
  return calculateGain(nonlinearity, a) / Math.sqrt(fansOf(shape)[mode]);
}

/** He et al., "Delving deep into rectifiers" (2015): U(±gain·√(3 / fan)), as torch.nn.init.kaiming_uniform_. */
export function kaimingUniform(
  shape: readonly number[],
  generator: Generator,
  options: KaimingOptions = {},
): Float32Array {
  const bound = Math.sqrt(3) * kaimingStd(shape, options);
  return uniform(shape, generator, -bound, bound);
}

/** N(0, gain² / fan), as torch.nn.init.kaiming_normal_. */
export const kaimingNormal = (
  shape: readonly number[],
  generator: Generator,
  options: KaimingOptions = {},
): Float32Array => normal(shape, generator, 0, kaimingStd(shape, options));

function xavierStd(shape: readonly number[], gain: number): number {
  if (!Number.isFinite(gain)) throw new RangeError(`gain is ${shown(gain)}; pass a number`);
  const { fanIn, fanOut } = fansOf(shape);
  return gain * Math.sqrt(2 / (fanIn + fanOut));
}

/** Glorot and Bengio (2010): U(±gain·√(6 / (fanIn + fanOut))), as torch.nn.init.xavier_uniform_. */
export function xavierUniform(
  shape: readonly number[],
  generator: Generator,
  gain = 1,
): Float32Array {
  const bound = Math.sqrt(3) * xavierStd(shape, gain);
  return uniform(shape, generator, -bound, bound);
}

/** N(0, 2·gain² / (fanIn + fanOut)), as torch.nn.init.xavier_normal_. */
export const xavierNormal = (
  shape: readonly number[],
  generator: Generator,
  gain = 1,
): Float32Array => normal(shape, generator, 0, xavierStd(shape, gain));

/**
 * U(±1/√fanIn): torch's default for the weights and biases of linear layers and convolutions. (torch writes it as
 * kaiming_uniform_ with a = √5, which is the same.)
 */
export function defaultUniform(
  shape: readonly number[],
  generator: Generator,
  fanIn: number,
): Float32Array {
  const bound = 1 / Math.sqrt(fanIn);
  return uniform(shape, generator, -bound, bound);
}
