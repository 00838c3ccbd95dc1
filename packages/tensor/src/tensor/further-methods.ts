import { type BackwardOptions, backward } from "../backward/backward.js";
import * as ops from "../ops/index.js";
import type { Tensor } from "./tensor.js";

const self = (methods: FurtherMethods): Tensor => methods as unknown as Tensor;

/**
 * The methods that tensors have where the entry `@halfstep/tensor` is loaded: each calls the function of the same name. Programs of the
 * entry `functional` alone do without them, and bundle only the ops that they call.
 */
export abstract class FurtherMethods {
  /**
   * Computes the gradients of this tensor with respect to every leaf that requires one, and assigns them to, or adds them to,
   * the leaves' `grad`. A tensor of more than one element needs `gradient`, of its own shape.
   */
  backward(options?: BackwardOptions): void {
    backward(self(this), options);
  }
  /** Sum over `axes` (all of them by default), in float32. */
  sum(axes?: number | readonly number[], options?: ops.SumOptions): Tensor {
    return ops.sum(self(this), axes, options);
  }
  /** Mean over `axes` (all of them by default). */
  mean(axes?: number | readonly number[], options?: ops.KeepOptions): Tensor {
    return ops.mean(self(this), axes, options);
  }
  /** 1 / x, in float32 under autocast. */
  reciprocal(): Tensor {
    return ops.reciprocal(self(this));
  }
  /** The hyperbolic tangent. */
  tanh(): Tensor {
    return ops.tanh(self(this));
  }
  /** Matrix product of the last two dimensions; batch dimensions broadcast. */
  matmul(other: Tensor, options?: ops.MatmulOptions): Tensor {
    return ops.matmul(self(this), other, options);
  }
  /** Probabilities over an axis, the last by default. */
  softmax(axis?: number, options?: ops.SoftmaxOptions): Tensor {
    return ops.softmax(self(this), axis, options);
  }
  /** Logarithms of the probabilities over an axis, the last by default. */
  logSoftmax(axis?: number, options?: ops.SoftmaxOptions): Tensor {
    return ops.logSoftmax(self(this), axis, options);
  }
  /** The index of the largest element along an axis, as uint32; without an axis, among all elements. */
  argmax(axis?: number): Tensor {
    return ops.argmax(self(this), axis);
  }
  /** −1, 0 or 1; NaN stays NaN. */
  sign(): Tensor {
    return ops.sign(self(this));
  }
  /** The largest whole number that is not above x. */
  floor(): Tensor {
    return ops.floor(self(this));
  }
  /** The smallest whole number that is not below x. */
  ceil(): Tensor {
    return ops.ceil(self(this));
  }
  /** The nearest whole number; of two that are equally near, the even one. */
  round(): Tensor {
    return ops.round(self(this));
  }
  /** The sine of an angle in radians. */
  sin(): Tensor {
    return ops.sin(self(this));
  }
  /** The cosine of an angle in radians. */
  cos(): Tensor {
    return ops.cos(self(this));
  }
  /** The tangent of an angle in radians. */
  tan(): Tensor {
    return ops.tan(self(this));
  }
  /** The angle from −π/2 to π/2 whose sine is x. */
  asin(): Tensor {
    return ops.asin(self(this));
  }
  /** The angle from 0 to π whose cosine is x. */
  acos(): Tensor {
    return ops.acos(self(this));
  }
  /** The angle from −π/2 to π/2 whose tangent is x. */
  atan(): Tensor {
    return ops.atan(self(this));
  }
  /** The hyperbolic sine. */
  sinh(): Tensor {
    return ops.sinh(self(this));
  }
  /** The hyperbolic cosine. */
  cosh(): Tensor {
    return ops.cosh(self(this));
  }
  /** exp(x) − 1, relatively exact near 0. */
  expm1(): Tensor {
    return ops.expm1(self(this));
  }
  /** log(1 + x), relatively exact near 0. */
  log1p(): Tensor {
    return ops.log1p(self(this));
  }
  /** The logarithm to base 2. */
  log2(): Tensor {
    return ops.log2(self(this));
  }
  /** The logarithm to base 10. */
  log10(): Tensor {
    return ops.log10(self(this));
  }
  /** 1 / √x. */
  rsqrt(): Tensor {
    return ops.rsqrt(self(this));
  }
  /** The error function. */
  erf(): Tensor {
    return ops.erf(self(this));
  }
  /** The inverse of the error function, on [−1, 1]. */
  erfinv(): Tensor {
    return ops.erfinv(self(this));
  }
  /** x · sigmoid(x), also called swish. */
  silu(): Tensor {
    return ops.silu(self(this));
  }
  /** Where x is 0, as a mask (uint32: 1 or 0). */
  logicalNot(): Tensor {
    return ops.logicalNot(self(this));
  }
  /** Where x is NaN, as a mask. */
  isNan(): Tensor {
    return ops.isNan(self(this));
  }
  /** Where x is ∞ or −∞, as a mask. */
  isInf(): Tensor {
    return ops.isInf(self(this));
  }
  /** Where x is neither NaN nor infinite, as a mask. */
  isFinite(): Tensor {
    return ops.isFiniteNumber(self(this));
  }
  /** x to the power of a number or of another tensor. */
  pow(exponent: number | Tensor): Tensor {
    return ops.pow(self(this), exponent);
  }
  /** log(1 + exp(β x)) / β. */
  softplus(options?: ops.SoftplusOptions): Tensor {
    return ops.softplus(self(this), options);
  }
  /** x · Φ(x), with Φ the normal distribution. */
  gelu(options?: ops.GeluOptions): Tensor {
    return ops.gelu(self(this), options);
  }
  /** x above 0, else α (exp(x) − 1); α is 1 by default. */
  elu(alpha?: number): Tensor {
    return ops.elu(self(this), alpha);
  }
  /** x above 0, else slope · x; the slope is 0.01 by default. */
  leakyRelu(negativeSlope?: number): Tensor {
    return ops.leakyRelu(self(this), negativeSlope);
  }
  /** x within [min, max], either of which may be missing. */
  clamp(range: ops.RangeOptions): Tensor {
    return ops.clamp(self(this), range);
  }
  /** The larger of two; NaN if either is. */
  maximum(other: Tensor): Tensor {
    return ops.maximum(self(this), other);
  }
  /** The smaller of two; NaN if either is. */
  minimum(other: Tensor): Tensor {
    return ops.minimum(self(this), other);
  }
  /** Where this = `other`, as a mask (uint32: 1 or 0). */
  eq(other: Tensor | number): Tensor {
    return ops.eq(self(this), other);
  }
  /** Where this ≠ `other`, as a mask. */
  ne(other: Tensor | number): Tensor {
    return ops.ne(self(this), other);
  }
  /** Where this < `other`, as a mask. */
  lt(other: Tensor | number): Tensor {
    return ops.lt(self(this), other);
  }
  /** Where this ≤ `other`, as a mask. */
  le(other: Tensor | number): Tensor {
    return ops.le(self(this), other);
  }
  /** Where this > `other`, as a mask. */
  gt(other: Tensor | number): Tensor {
    return ops.gt(self(this), other);
  }
  /** Where this ≥ `other`, as a mask. */
  ge(other: Tensor | number): Tensor {
    return ops.ge(self(this), other);
  }
  /** Where both are not 0, as a mask. */
  logicalAnd(other: Tensor): Tensor {
    return ops.logicalAnd(self(this), other);
  }
  /** Where one or both are not 0, as a mask. */
  logicalOr(other: Tensor): Tensor {
    return ops.logicalOr(self(this), other);
  }
  /** This where the mask is not 0, `other` elsewhere. */
  where(mask: Tensor, other: Tensor | number): Tensor {
    return ops.where(mask, self(this), other);
  }
  /** `value` where the mask is not 0; a finite value stays finite in every dtype. */
  maskedFill(mask: Tensor, value: number): Tensor {
    return ops.maskedFill(self(this), mask, value);
  }
  /** Product over `axes` (all of them by default), in float32. */
  prod(axes?: number | readonly number[], options?: ops.SumOptions): Tensor {
    return ops.prod(self(this), axes, options);
  }
  /** Maximum over `axes` (all of them by default); NaN wins. */
  amax(axes?: number | readonly number[], options?: ops.KeepOptions): Tensor {
    return ops.amax(self(this), axes, options);
  }
  /** Minimum over `axes` (all of them by default); NaN wins. */
  amin(axes?: number | readonly number[], options?: ops.KeepOptions): Tensor {
    return ops.amin(self(this), axes, options);
  }
  /** The largest element along an axis, and its index. */
  max(axis: number, options?: ops.KeepOptions): ops.Extremum {
    return ops.max(self(this), axis, options);
  }
  /** The smallest element along an axis, and its index. */
  min(axis: number, options?: ops.KeepOptions): ops.Extremum {
    return ops.min(self(this), axis, options);
  }
  /** The k largest elements along an axis, best first, and their indices. */
  topK(k: number, options?: ops.TopKOptions): ops.Extremum {
    return ops.topK(self(this), k, options);
  }
  /** Variance over `axes` (all of them by default), unbiased by default. */
  variance(options?: ops.VarianceOptions): Tensor {
    return ops.variance(self(this), options);
  }
  /** Standard deviation over `axes` (all of them by default), unbiased by default. */
  std(options?: ops.VarianceOptions): Tensor {
    return ops.std(self(this), options);
  }
  /** (Σ |x|^ord)^(1/ord) over `axes` (all of them by default); `ord` is 2 by default. */
  norm(options?: ops.VectorNormOptions): Tensor {
    return ops.norm(self(this), options);
  }
  /** log Σ exp over `axes` (all of them by default). */
  logsumexp(options?: ops.ReduceOptions): Tensor {
    return ops.logsumexp(self(this), options);
  }
  /** The running sum along an axis. */
  cumsum(axis: number, options?: ops.CumulateOptions): Tensor {
    return ops.cumsum(self(this), axis, options);
  }
  /** The running product along an axis. */
  cumprod(axis: number, options?: ops.CumulateOptions): Tensor {
    return ops.cumprod(self(this), axis, options);
  }
  /** Exchanges two dimensions, as a copy. */
  transpose(a: number, b: number): Tensor {
    return ops.transpose(self(this), a, b);
  }
  /** Inserts a dimension of size 1. No copy. */
  unsqueeze(axis: number): Tensor {
    return ops.unsqueeze(self(this), axis);
  }
  /** Removes a dimension of size 1. No copy. */
  squeeze(axis?: number): Tensor {
    return ops.squeeze(self(this), axis);
  }
  /** The elements from `start` up to `end` along an axis, as a copy. */
  slice(axis: number, options?: ops.SliceOptions): Tensor {
    return ops.slice(self(this), axis, options);
  }
  /** `length` places along an axis, from `start` on. */
  narrow(axis: number, start: number, length: number): Tensor {
    return ops.narrow(self(this), axis, start, length);
  }
  /** The elements at one index of an axis, which is removed. */
  select(axis: number, index: number): Tensor {
    return ops.select(self(this), axis, index);
  }
  /** Splits the tensor along an axis (the first by default) into pieces of the given sizes, or of one size. */
  split(sizes: number | readonly number[], axis?: number): Tensor[] {
    return ops.split(self(this), sizes, axis);
  }
  /** Splits the tensor along an axis (the first by default) into at most `count` pieces of equal size. */
  chunk(count: number, axis?: number): Tensor[] {
    return ops.chunk(self(this), count, axis);
  }
  /** Reverses some axes. */
  flip(axes: number | readonly number[]): Tensor {
    return ops.flip(self(this), axes);
  }
  /** Shifts the elements along an axis by `by` places; those past the end wrap around to the start. */
  roll(by: number | readonly number[], axes?: number | readonly number[]): Tensor {
    return ops.roll(self(this), by, axes);
  }
  /** The elements at the places that a uint32 index names along an axis. */
  gather(axis: number, index: Tensor): Tensor {
    return ops.gather(self(this), axis, index);
  }
  /** The places along an axis that a uint32 index names. */
  indexSelect(axis: number, index: Tensor): Tensor {
    return ops.indexSelect(self(this), axis, index);
  }
  /** This with `source` added to the places that a uint32 index names along an axis. */
  scatterAdd(axis: number, index: Tensor, source: Tensor): Tensor {
    return ops.scatterAdd(self(this), axis, index, source);
  }
  /** This with elements dropped at random, as in training. */
  dropout(options: ops.DropoutOptions): Tensor {
    return ops.dropout(self(this), options);
  }
}
