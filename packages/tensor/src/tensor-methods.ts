import * as ops from "./ops/index.js";
import type { Tensor } from "./tensor.js";

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
  sum(axes?: number | readonly number[], options: { keepDimensions?: boolean } = {}): Tensor {
    return ops.sum(this.#self, axes, options.keepDimensions ?? false);
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
}
