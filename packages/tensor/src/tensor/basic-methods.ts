import { relu, sigmoid } from "../ops/activations.js";
import { abs, add, div, mul, scale, sqrt, square, sub } from "../ops/elementwise.js";
import { expand, permute, reshape } from "../ops/shape.js";
import { exp, log } from "../ops/transcendental.js";
import type { Tensor } from "./tensor.js";

const self = (methods: BasicMethods): Tensor => methods as unknown as Tensor;

/** The methods that tensors always have, because ops and models are written with them. The others are in further-methods.ts. */
export abstract class BasicMethods {
  /** This + `other`, a tensor that broadcasts or a number. */
  add(other: Tensor | number): Tensor {
    return add(self(this), other);
  }
  /** This − `other`, a tensor that broadcasts or a number. */
  sub(other: Tensor | number): Tensor {
    return sub(self(this), other);
  }
  /** This · `other`, a tensor that broadcasts or a number. */
  mul(other: Tensor | number): Tensor {
    return mul(self(this), other);
  }
  /** This / `other`, a tensor that broadcasts or a number. */
  div(other: Tensor | number): Tensor {
    return div(self(this), other);
  }
  /** −x. */
  neg(): Tensor {
    return scale(self(this), -1);
  }
  /** eˣ, in float32 under autocast. */
  exp(): Tensor {
    return exp(self(this));
  }
  /** The natural logarithm, in float32 under autocast. */
  log(): Tensor {
    return log(self(this));
  }
  /** √x. */
  sqrt(): Tensor {
    return sqrt(self(this));
  }
  /** x². */
  square(): Tensor {
    return square(self(this));
  }
  /** max(x, 0); NaN stays NaN. */
  relu(): Tensor {
    return relu(self(this));
  }
  /** The same elements in another shape; one size may be -1. No copy. */
  reshape(shape: readonly number[]): Tensor {
    return reshape(self(this), shape);
  }
  /** The dimensions in another order, as a copy. */
  permute(order: readonly number[]): Tensor {
    return permute(self(this), order);
  }
  /** Repeats size-1 dimensions to a larger shape, as a copy. */
  expand(shape: readonly number[]): Tensor {
    return expand(self(this), shape);
  }
  /** |x|. */
  abs(): Tensor {
    return abs(self(this));
  }
  /** 1 / (1 + exp(−x)). */
  sigmoid(): Tensor {
    return sigmoid(self(this));
  }
}
