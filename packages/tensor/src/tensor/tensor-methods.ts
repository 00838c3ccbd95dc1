import * as ops from "../ops/index.js";
import type { Tensor } from "./tensor.js";

/** The ops that tensors have as methods: each calls the function of the same name. `Tensor` itself is in tensor.ts. */
export abstract class TensorMethods {
  get #self(): Tensor {
    return this as unknown as Tensor;
  }

  /** This + `other`, a tensor that broadcasts or a number. */
  add(other: Tensor | number): Tensor {
    return ops.add(this.#self, other);
  }
  /** This − `other`, a tensor that broadcasts or a number. */
  sub(other: Tensor | number): Tensor {
    return ops.sub(this.#self, other);
  }
  /** This · `other`, a tensor that broadcasts or a number. */
  mul(other: Tensor | number): Tensor {
    return ops.mul(this.#self, other);
  }
  /** This / `other`, a tensor that broadcasts or a number. */
  div(other: Tensor | number): Tensor {
    return ops.div(this.#self, other);
  }
  /** −x. */
  neg(): Tensor {
    return ops.scale(this.#self, -1);
  }
  /** eˣ, in float32 under autocast. */
  exp(): Tensor {
    return ops.exp(this.#self);
  }
  /** The natural logarithm, in float32 under autocast. */
  log(): Tensor {
    return ops.log(this.#self);
  }
  /** √x. */
  sqrt(): Tensor {
    return ops.sqrt(this.#self);
  }
  /** x². */
  square(): Tensor {
    return ops.square(this.#self);
  }
  /** 1 / x, in float32 under autocast. */
  reciprocal(): Tensor {
    return ops.reciprocal(this.#self);
  }
  /** The hyperbolic tangent. */
  tanh(): Tensor {
    return ops.tanh(this.#self);
  }
  /** 1 / (1 + exp(−x)). */
  sigmoid(): Tensor {
    return ops.sigmoid(this.#self);
  }
  /** max(x, 0); NaN stays NaN. */
  relu(): Tensor {
    return ops.relu(this.#self);
  }
  /** Sum over `axes` (all of them by default), in float32. */
  sum(axes?: number | readonly number[], options?: ops.SumOptions): Tensor {
    return ops.sum(this.#self, axes, options);
  }
  /** Mean over `axes` (all of them by default). */
  mean(axes?: number | readonly number[], options?: ops.KeepOptions): Tensor {
    return ops.mean(this.#self, axes, options);
  }
  /** Matrix product of the last two dimensions; batch dimensions broadcast. */
  matmul(other: Tensor, options?: ops.MatmulOptions): Tensor {
    return ops.matmul(this.#self, other, options);
  }
  /** The same elements in another shape; one size may be -1. No copy. */
  reshape(shape: readonly number[]): Tensor {
    return ops.reshape(this.#self, shape);
  }
  /** The dimensions in another order, as a copy. */
  permute(order: readonly number[]): Tensor {
    return ops.permute(this.#self, order);
  }
  /** Repeats size-1 dimensions to a larger shape, as a copy. */
  expand(shape: readonly number[]): Tensor {
    return ops.expand(this.#self, shape);
  }
  /** Probabilities over an axis, the last by default. */
  softmax(axis?: number, options?: ops.SoftmaxOptions): Tensor {
    return ops.softmax(this.#self, axis, options);
  }
  /** Logarithms of the probabilities over an axis, the last by default. */
  logSoftmax(axis?: number, options?: ops.SoftmaxOptions): Tensor {
    return ops.logSoftmax(this.#self, axis, options);
  }
  /** The index of the largest element along an axis, as uint32; without an axis, among all elements. */
  argmax(axis?: number): Tensor {
    return ops.argmax(this.#self, axis);
  }
  /** |x|. */
  abs(): Tensor {
    return ops.abs(this.#self);
  }
  /** −1, 0 or 1; NaN stays NaN. */
  sign(): Tensor {
    return ops.sign(this.#self);
  }
  /** The largest whole number that is not above x. */
  floor(): Tensor {
    return ops.floor(this.#self);
  }
  /** The smallest whole number that is not below x. */
  ceil(): Tensor {
    return ops.ceil(this.#self);
  }
  /** The nearest whole number; of two that are equally near, the even one. */
  round(): Tensor {
    return ops.round(this.#self);
  }
  /** The sine of an angle in radians. */
  sin(): Tensor {
    return ops.sin(this.#self);
  }
  /** The cosine of an angle in radians. */
  cos(): Tensor {
    return ops.cos(this.#self);
  }
  /** The tangent of an angle in radians. */
  tan(): Tensor {
    return ops.tan(this.#self);
  }
  /** The angle from −π/2 to π/2 whose sine is x. */
  asin(): Tensor {
    return ops.asin(this.#self);
  }
  /** The angle from 0 to π whose cosine is x. */
  acos(): Tensor {
    return ops.acos(this.#self);
  }
  /** The angle from −π/2 to π/2 whose tangent is x. */
  atan(): Tensor {
    return ops.atan(this.#self);
  }
  /** The hyperbolic sine. */
  sinh(): Tensor {
    return ops.sinh(this.#self);
  }
  /** The hyperbolic cosine. */
  cosh(): Tensor {
    return ops.cosh(this.#self);
  }
  /** exp(x) − 1, relatively exact near 0. */
  expm1(): Tensor {
    return ops.expm1(this.#self);
  }
  /** log(1 + x), relatively exact near 0. */
  log1p(): Tensor {
    return ops.log1p(this.#self);
  }
  /** The logarithm to base 2. */
  log2(): Tensor {
    return ops.log2(this.#self);
  }
  /** The logarithm to base 10. */
  log10(): Tensor {
    return ops.log10(this.#self);
  }
  /** 1 / √x. */
  rsqrt(): Tensor {
    return ops.rsqrt(this.#self);
  }
  /** The error function. */
  erf(): Tensor {
    return ops.erf(this.#self);
  }
  /** The inverse of the error function, on [−1, 1]. */
  erfinv(): Tensor {
    return ops.erfinv(this.#self);
  }
  /** x · sigmoid(x), also called swish. */
  silu(): Tensor {
    return ops.silu(this.#self);
  }
  /** Where x is 0, as a mask (uint32: 1 or 0). */
  logicalNot(): Tensor {
    return ops.logicalNot(this.#self);
  }
  /** Where x is NaN, as a mask. */
  isNan(): Tensor {
    return ops.isNan(this.#self);
  }
  /** Where x is ∞ or −∞, as a mask. */
  isInf(): Tensor {
    return ops.isInf(this.#self);
  }
  /** Where x is neither NaN nor infinite, as a mask. */
  isFinite(): Tensor {
    return ops.isFiniteNumber(this.#self);
  }
  /** x to the power of a number or of another tensor. */
  pow(exponent: number | Tensor): Tensor {
    return ops.pow(this.#self, exponent);
  }
  /** log(1 + exp(β x)) / β. */
  softplus(options?: ops.SoftplusOptions): Tensor {
    return ops.softplus(this.#self, options);
  }
  /** x · Φ(x), with Φ the normal distribution. */
  gelu(options?: ops.GeluOptions): Tensor {
    return ops.gelu(this.#self, options);
  }
  /** x above 0, else α (exp(x) − 1); α is 1 by default. */
  elu(alpha?: number): Tensor {
    return ops.elu(this.#self, alpha);
  }
  /** x above 0, else slope · x; the slope is 0.01 by default. */
  leakyRelu(negativeSlope?: number): Tensor {
    return ops.leakyRelu(this.#self, negativeSlope);
  }
  /** x within [min, max], either of which may be missing. */
  clamp(range: ops.RangeOptions): Tensor {
    return ops.clamp(this.#self, range);
  }
  /** The larger of two; NaN if either is. */
  maximum(other: Tensor): Tensor {
    return ops.maximum(this.#self, other);
  }
  /** The smaller of two; NaN if either is. */
  minimum(other: Tensor): Tensor {
    return ops.minimum(this.#self, other);
  }
  /** Where this = `other`, as a mask (uint32: 1 or 0). */
  eq(other: Tensor | number): Tensor {
    return ops.eq(this.#self, other);
  }
  /** Where this ≠ `other`, as a mask. */
  ne(other: Tensor | number): Tensor {
    return ops.ne(this.#self, other);
  }
  /** Where this < `other`, as a mask. */
  lt(other: Tensor | number): Tensor {
    return ops.lt(this.#self, other);
  }
  /** Where this ≤ `other`, as a mask. */
  le(other: Tensor | number): Tensor {
    return ops.le(this.#self, other);
  }
  /** Where this > `other`, as a mask. */
  gt(other: Tensor | number): Tensor {
    return ops.gt(this.#self, other);
  }
  /** Where this ≥ `other`, as a mask. */
  ge(other: Tensor | number): Tensor {
    return ops.ge(this.#self, other);
  }
  /** Where both are not 0, as a mask. */
  logicalAnd(other: Tensor): Tensor {
    return ops.logicalAnd(this.#self, other);
  }
  /** Where one or both are not 0, as a mask. */
  logicalOr(other: Tensor): Tensor {
    return ops.logicalOr(this.#self, other);
  }
  /** This where the mask is not 0, `other` elsewhere. */
  where(mask: Tensor, other: Tensor): Tensor {
    return ops.where(mask, this.#self, other);
  }
  /** `value` where the mask is not 0; a finite value stays finite in every dtype. */
  maskedFill(mask: Tensor, value: number): Tensor {
    return ops.maskedFill(this.#self, mask, value);
  }
  /** Product over `axes` (all of them by default), in float32. */
  prod(axes?: number | readonly number[], options?: ops.SumOptions): Tensor {
    return ops.prod(this.#self, axes, options);
  }
  /** Maximum over `axes` (all of them by default); NaN wins. */
  amax(axes?: number | readonly number[], options?: ops.KeepOptions): Tensor {
    return ops.amax(this.#self, axes, options);
  }
  /** Minimum over `axes` (all of them by default); NaN wins. */
  amin(axes?: number | readonly number[], options?: ops.KeepOptions): Tensor {
    return ops.amin(this.#self, axes, options);
  }
  /** The largest element along an axis, and its index. */
  max(axis: number, options?: ops.KeepOptions): ops.Extremum {
    return ops.max(this.#self, axis, options);
  }
  /** The smallest element along an axis, and its index. */
  min(axis: number, options?: ops.KeepOptions): ops.Extremum {
    return ops.min(this.#self, axis, options);
  }
  /** The k largest elements along an axis, best first, and their indices. */
  topK(k: number, options?: ops.TopKOptions): ops.Extremum {
    return ops.topK(this.#self, k, options);
  }
  /** Variance over `axes` (all of them by default), unbiased by default. */
  variance(options?: ops.VarianceOptions): Tensor {
    return ops.variance(this.#self, options);
  }
  /** Standard deviation over `axes` (all of them by default), unbiased by default. */
  std(options?: ops.VarianceOptions): Tensor {
    return ops.std(this.#self, options);
  }
  /** (Σ |x|^ord)^(1/ord) over `axes` (all of them by default); `ord` is 2 by default. */
  norm(options?: ops.VectorNormOptions): Tensor {
    return ops.norm(this.#self, options);
  }
  /** log Σ exp over `axes` (all of them by default). */
  logsumexp(options?: ops.ReduceOptions): Tensor {
    return ops.logsumexp(this.#self, options);
  }
  /** The running sum along an axis. */
  cumsum(axis: number, options?: ops.CumulateOptions): Tensor {
    return ops.cumsum(this.#self, axis, options);
  }
  /** The running product along an axis. */
  cumprod(axis: number, options?: ops.CumulateOptions): Tensor {
    return ops.cumprod(this.#self, axis, options);
  }
  /** Exchanges two dimensions, as a copy. */
  transpose(a: number, b: number): Tensor {
    return ops.transpose(this.#self, a, b);
  }
  /** Inserts a dimension of size 1. No copy. */
  unsqueeze(axis: number): Tensor {
    return ops.unsqueeze(this.#self, axis);
  }
  /** Removes a dimension of size 1. No copy. */
  squeeze(axis: number): Tensor {
    return ops.squeeze(this.#self, axis);
  }
  /** The elements from `start` up to `end` along an axis, as a copy. */
  slice(axis: number, options?: ops.SliceOptions): Tensor {
    return ops.slice(this.#self, axis, options);
  }
  /** `length` places along an axis, from `start` on. */
  narrow(axis: number, start: number, length: number): Tensor {
    return ops.narrow(this.#self, axis, start, length);
  }
  /** The elements at one index of an axis, which is removed. */
  select(axis: number, index: number): Tensor {
    return ops.select(this.#self, axis, index);
  }
  /** Splits the tensor along an axis (the first by default) into pieces of the given sizes, or of one size. */
  split(sizes: number | readonly number[], axis?: number): Tensor[] {
    return ops.split(this.#self, sizes, axis);
  }
  /** Splits the tensor along an axis (the first by default) into at most `count` pieces of equal size. */
  chunk(count: number, axis?: number): Tensor[] {
    return ops.chunk(this.#self, count, axis);
  }
  /** Reverses some axes. */
  flip(axes: number | readonly number[]): Tensor {
    return ops.flip(this.#self, axes);
  }
  /** Shifts the elements along an axis by `by` places; those past the end wrap around to the start. */
  roll(by: number, axis: number): Tensor {
    return ops.roll(this.#self, by, axis);
  }
  /** The elements at the places that a uint32 index names along an axis. */
  gather(axis: number, index: Tensor): Tensor {
    return ops.gather(this.#self, axis, index);
  }
  /** The places along an axis that a uint32 index names. */
  indexSelect(axis: number, index: Tensor): Tensor {
    return ops.indexSelect(this.#self, axis, index);
  }
  /** This with `source` added to the places that a uint32 index names along an axis. */
  scatterAdd(axis: number, index: Tensor, source: Tensor): Tensor {
    return ops.scatterAdd(this.#self, axis, index, source);
  }
  /** This with elements dropped at random, as in training. */
  dropout(options: ops.DropoutOptions): Tensor {
    return ops.dropout(this.#self, options);
  }
}
