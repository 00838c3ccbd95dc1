import type { DType } from "@halfstep/device";
import * as ops from "./ops/index.js";
import type { Tensor } from "./tensor.js";

export interface SumOptions {
  /** Keep the axes, with size 1. Default false. */
  readonly keepDimensions?: boolean;
  /** The dtype to compute in, as in torch; without it, float32 under autocast. */
  readonly dtype?: DType;
}

/** The ops that tensors have as methods. What a tensor is stands in tensor.ts. */
export abstract class TensorMethods {
  get #self(): Tensor {
    return this as unknown as Tensor;
  }

  add(other: Tensor | number): Tensor {
    return typeof other === "number"
      ? ops.addScalar([this.#self], other)
      : ops.add([this.#self, other], null);
  }
  sub(other: Tensor | number): Tensor {
    return typeof other === "number"
      ? ops.addScalar([this.#self], -other)
      : ops.sub([this.#self, other], null);
  }
  mul(other: Tensor | number): Tensor {
    return typeof other === "number"
      ? ops.scale([this.#self], other)
      : ops.mul([this.#self, other], null);
  }
  div(other: Tensor | number): Tensor {
    return typeof other === "number"
      ? ops.scale([this.#self], 1 / other)
      : ops.div([this.#self, other], null);
  }
  neg(): Tensor {
    return ops.scale([this.#self], -1);
  }
  exp(): Tensor {
    return ops.exp([this.#self], null);
  }
  log(): Tensor {
    return ops.log([this.#self], null);
  }
  sqrt(): Tensor {
    return ops.sqrt([this.#self], null);
  }
  square(): Tensor {
    return ops.square([this.#self], null);
  }
  reciprocal(): Tensor {
    return ops.reciprocal([this.#self], null);
  }
  tanh(): Tensor {
    return ops.tanh([this.#self], null);
  }
  sigmoid(): Tensor {
    return ops.sigmoid([this.#self], null);
  }
  relu(): Tensor {
    return ops.relu([this.#self], null);
  }
  /** Sum over `axes` (all of them by default), in float32. */
  sum(axes?: number | readonly number[], options: SumOptions = {}): Tensor {
    return ops.sum(this.#self, axes, options.keepDimensions ?? false, options.dtype);
  }
  /** Mean over `axes` (all of them by default). */
  mean(axes?: number | readonly number[], options: { keepDimensions?: boolean } = {}): Tensor {
    return ops.mean(this.#self, axes, options.keepDimensions ?? false);
  }
  /** Matrix product of the last two dimensions. */
  matmul(other: Tensor, options: ops.MatmulOptions = {}): Tensor {
    return ops.matmul([this.#self, other], options);
  }
  /** The same elements in another shape; one size may be -1. No copy. */
  reshape(shape: readonly number[]): Tensor {
    return ops.reshape(this.#self, shape);
  }
  /** The dimensions in another order, as a copy. */
  permute(order: readonly number[]): Tensor {
    return ops.permute([this.#self], order);
  }
  /** Repeats size-1 dimensions to a larger shape, as a copy. */
  expand(shape: readonly number[]): Tensor {
    return ops.expand([this.#self], shape);
  }
  /** Probabilities over an axis, the last by default. */
  softmax(axis?: number, options?: ops.SoftmaxOptions): Tensor {
    return ops.softmax(this.#self, axis, options);
  }
  /** Logarithms of the probabilities over an axis, the last by default. */
  logSoftmax(axis?: number, options?: ops.SoftmaxOptions): Tensor {
    return ops.logSoftmax(this.#self, axis, options);
  }
  abs(): Tensor {
    return ops.abs([this.#self], null);
  }
  sign(): Tensor {
    return ops.sign([this.#self], null);
  }
  floor(): Tensor {
    return ops.floor([this.#self], null);
  }
  ceil(): Tensor {
    return ops.ceil([this.#self], null);
  }
  round(): Tensor {
    return ops.round([this.#self], null);
  }
  sin(): Tensor {
    return ops.sin([this.#self], null);
  }
  cos(): Tensor {
    return ops.cos([this.#self], null);
  }
  tan(): Tensor {
    return ops.tan([this.#self], null);
  }
  asin(): Tensor {
    return ops.asin([this.#self], null);
  }
  acos(): Tensor {
    return ops.acos([this.#self], null);
  }
  atan(): Tensor {
    return ops.atan([this.#self], null);
  }
  sinh(): Tensor {
    return ops.sinh([this.#self], null);
  }
  cosh(): Tensor {
    return ops.cosh([this.#self], null);
  }
  expm1(): Tensor {
    return ops.expm1([this.#self], null);
  }
  log1p(): Tensor {
    return ops.log1p([this.#self], null);
  }
  log2(): Tensor {
    return ops.log2([this.#self], null);
  }
  log10(): Tensor {
    return ops.log10([this.#self], null);
  }
  rsqrt(): Tensor {
    return ops.rsqrt([this.#self], null);
  }
  erf(): Tensor {
    return ops.erf([this.#self], null);
  }
  erfinv(): Tensor {
    return ops.erfinv([this.#self], null);
  }
  silu(): Tensor {
    return ops.silu([this.#self], null);
  }
  logicalNot(): Tensor {
    return ops.logicalNot([this.#self], null);
  }
  isNan(): Tensor {
    return ops.isNan([this.#self], null);
  }
  isInf(): Tensor {
    return ops.isInf([this.#self], null);
  }
  isFinite(): Tensor {
    return ops.isFiniteNumber([this.#self], null);
  }
  pow(exponent: number | Tensor): Tensor {
    return ops.pow(this.#self, exponent);
  }
  softplus(options?: ops.SoftplusOptions): Tensor {
    return ops.softplus(this.#self, options);
  }
  gelu(options?: ops.GeluOptions): Tensor {
    return ops.gelu(this.#self, options);
  }
  elu(alpha?: number): Tensor {
    return ops.elu(this.#self, alpha);
  }
  leakyRelu(negativeSlope?: number): Tensor {
    return ops.leakyRelu(this.#self, negativeSlope);
  }
  clamp(range: { min?: number; max?: number }): Tensor {
    return ops.clamp(this.#self, range);
  }
  maximum(other: Tensor): Tensor {
    return ops.maximum([this.#self, other], null);
  }
  minimum(other: Tensor): Tensor {
    return ops.minimum([this.#self, other], null);
  }
  /** Comparisons give masks: uint32, 1 or 0. */
  eq(other: Tensor | number): Tensor {
    return ops.eq(this.#self, other);
  }
  ne(other: Tensor | number): Tensor {
    return ops.ne(this.#self, other);
  }
  lt(other: Tensor | number): Tensor {
    return ops.lt(this.#self, other);
  }
  le(other: Tensor | number): Tensor {
    return ops.le(this.#self, other);
  }
  gt(other: Tensor | number): Tensor {
    return ops.gt(this.#self, other);
  }
  ge(other: Tensor | number): Tensor {
    return ops.ge(this.#self, other);
  }
  logicalAnd(other: Tensor): Tensor {
    return ops.logicalAnd([this.#self, other], null);
  }
  logicalOr(other: Tensor): Tensor {
    return ops.logicalOr([this.#self, other], null);
  }
  /** This where the mask is not 0, `other` elsewhere. */
  where(mask: Tensor, other: Tensor): Tensor {
    return ops.where([mask, this.#self, other], null);
  }
  /** `value` where the mask is not 0; a finite value stays finite in every dtype. */
  maskedFill(mask: Tensor, value: number): Tensor {
    return ops.maskedFill(this.#self, mask, value);
  }
  prod(axes?: number | readonly number[], options: SumOptions = {}): Tensor {
    return ops.prod(this.#self, axes, options.keepDimensions, options.dtype);
  }
  amax(axes?: number | readonly number[], options: { keepDimensions?: boolean } = {}): Tensor {
    return ops.amax(this.#self, axes, options.keepDimensions);
  }
  amin(axes?: number | readonly number[], options: { keepDimensions?: boolean } = {}): Tensor {
    return ops.amin(this.#self, axes, options.keepDimensions);
  }
  /** The largest along an axis, and where it is. */
  max(axis: number, options: { keepDimensions?: boolean } = {}): ops.Extremum {
    return ops.max(this.#self, axis, options.keepDimensions);
  }
  min(axis: number, options: { keepDimensions?: boolean } = {}): ops.Extremum {
    return ops.min(this.#self, axis, options.keepDimensions);
  }
  /** The k largest along an axis, best first, and where they are. */
  topK(k: number, options?: ops.TopKOptions): ops.Extremum {
    return ops.topK(this.#self, k, options);
  }
  variance(options?: ops.VarianceOptions): Tensor {
    return ops.variance(this.#self, options);
  }
  std(options?: ops.VarianceOptions): Tensor {
    return ops.std(this.#self, options);
  }
  norm(options?: ops.VectorNormOptions): Tensor {
    return ops.norm(this.#self, options);
  }
  logsumexp(options?: ops.ReduceOptions): Tensor {
    return ops.logsumexp(this.#self, options);
  }
  cumsum(axis: number, options?: ops.CumulateOptions): Tensor {
    return ops.cumsum(this.#self, axis, options);
  }
  cumprod(axis: number, options?: ops.CumulateOptions): Tensor {
    return ops.cumprod(this.#self, axis, options);
  }
  /** Two dimensions exchanged, as a copy. */
  transpose(a: number, b: number): Tensor {
    return ops.transpose(this.#self, a, b);
  }
  /** A dimension of size 1 put in. No copy. */
  unsqueeze(axis: number): Tensor {
    return ops.unsqueeze(this.#self, axis);
  }
  /** A dimension of size 1 taken out. No copy. */
  squeeze(axis: number): Tensor {
    return ops.squeeze(this.#self, axis);
  }
  slice(axis: number, start?: number, end?: number, step?: number): Tensor {
    return ops.slice(this.#self, axis, start, end, step);
  }
  narrow(axis: number, start: number, length: number): Tensor {
    return ops.narrow(this.#self, axis, start, length);
  }
  select(axis: number, index: number): Tensor {
    return ops.select(this.#self, axis, index);
  }
  split(sizes: number | readonly number[], axis?: number): Tensor[] {
    return ops.split(this.#self, sizes, axis);
  }
  chunk(count: number, axis?: number): Tensor[] {
    return ops.chunk(this.#self, count, axis);
  }
  flip(axes: number | readonly number[]): Tensor {
    return ops.flip(this.#self, axes);
  }
  roll(by: number, axis: number): Tensor {
    return ops.roll(this.#self, by, axis);
  }
  gather(axis: number, index: Tensor): Tensor {
    return ops.gather(this.#self, axis, index);
  }
  indexSelect(axis: number, index: Tensor): Tensor {
    return ops.indexSelect(this.#self, axis, index);
  }
  scatterAdd(axis: number, index: Tensor, source: Tensor): Tensor {
    return ops.scatterAdd(this.#self, axis, index, source);
  }
  dropout(options: ops.DropoutOptions): Tensor {
    return ops.dropout(this.#self, options);
  }
}
