import {
  elu,
  type GeluOptions,
  gelu,
  hardtanh,
  leakyRelu,
  prelu,
  type Runtime,
  relu,
  type SoftplusOptions,
  sigmoid,
  silu,
  softplus,
  type Tensor,
  tanh,
  type Variable,
} from "@halfstep/tensor/functional";
import { requireArguments } from "../arguments.js";
import { Module, parameter } from "../module.js";

/** max(x, 0) */
export class ReLU extends Module {
  constructor();
  constructor(...surplus: readonly unknown[]) {
    super();
    requireArguments("new ReLU()", ...surplus);
  }

  forward(x: Tensor): Tensor {
    return relu(x);
  }
}

/** The hyperbolic tangent, as torch.nn.Tanh. */
export class Tanh extends Module {
  constructor();
  constructor(...surplus: readonly unknown[]) {
    super();
    requireArguments("new Tanh()", ...surplus);
  }

  forward(x: Tensor): Tensor {
    return tanh(x);
  }
}

/** 1 / (1 + exp(−x)), as torch.nn.Sigmoid. */
export class Sigmoid extends Module {
  constructor();
  constructor(...surplus: readonly unknown[]) {
    super();
    requireArguments("new Sigmoid()", ...surplus);
  }

  forward(x: Tensor): Tensor {
    return sigmoid(x);
  }
}

/** x · Φ(x), with Φ the normal distribution, or its approximation by tanh. */
export class GELU extends Module {
  readonly approximate: "none" | "tanh";

  constructor(options?: GeluOptions);
  constructor(options: GeluOptions = {}, ...surplus: readonly unknown[]) {
    super();
    requireArguments("new GELU({ approximate? })", options, ...surplus);
    const { approximate = "none" } = options;
    this.approximate = approximate;
  }

  forward(x: Tensor): Tensor {
    return gelu(x, { approximate: this.approximate });
  }
}

/** x · sigmoid(x) */
export class SiLU extends Module {
  constructor();
  constructor(...surplus: readonly unknown[]) {
    super();
    requireArguments("new SiLU()", ...surplus);
  }

  forward(x: Tensor): Tensor {
    return silu(x);
  }
}

/** x above 0, else α (exp(x) − 1). */
export class ELU extends Module {
  readonly alpha: number;

  constructor(alpha?: number);
  constructor(alpha = 1, ...surplus: readonly unknown[]) {
    super();
    requireArguments("new ELU(alpha?)", alpha, ...surplus);
    this.alpha = alpha;
  }

  forward(x: Tensor): Tensor {
    return elu(x, this.alpha);
  }
}

/** x above 0, else a small multiple of it. */
export class LeakyReLU extends Module {
  readonly negativeSlope: number;

  constructor(negativeSlope?: number);
  constructor(negativeSlope = 0.01, ...surplus: readonly unknown[]) {
    super();
    requireArguments("new LeakyReLU(negativeSlope?)", negativeSlope, ...surplus);
    this.negativeSlope = negativeSlope;
  }

  forward(x: Tensor): Tensor {
    return leakyRelu(x, this.negativeSlope);
  }
}

/** x above 0, else a learned multiple of it: one for all, or one a channel of the last dimension. */
export class PReLU extends Module {
  /** [channels] */
  readonly weight: Variable;

  constructor(runtime: Runtime, channels?: number, initial?: number);
  constructor(runtime: Runtime, channels = 1, initial = 0.25, ...surplus: readonly unknown[]) {
    super();
    requireArguments(
      "new PReLU(runtime, channels?, initial?)",
      runtime,
      channels,
      initial,
      ...surplus,
    );
    const values = new Float32Array(channels).fill(initial);
    this.weight = parameter(runtime, values, [channels], "weight");
  }

  forward(x: Tensor): Tensor {
    return prelu(x, this.weight);
  }
}

/** x within [min, max]. */
export class Hardtanh extends Module {
  readonly min: number;
  readonly max: number;

  constructor(min?: number, max?: number);
  constructor(min = -1, max = 1, ...surplus: readonly unknown[]) {
    super();
    requireArguments("new Hardtanh(min?, max?)", min, max, ...surplus);
    if (min > max)
      throw new RangeError(
        `new Hardtanh(min?, max?): min is ${min}, above max, ${max}; pass min ≤ max`,
      );
    this.min = min;
    this.max = max;
  }

  forward(x: Tensor): Tensor {
    return hardtanh(x, { min: this.min, max: this.max });
  }
}

/** log(1 + exp(β x)) / β */
export class Softplus extends Module {
  readonly options: SoftplusOptions;

  constructor(options?: SoftplusOptions);
  constructor(options: SoftplusOptions = {}, ...surplus: readonly unknown[]) {
    super();
    requireArguments("new Softplus({ beta?, threshold? })", options, ...surplus);
    this.options = options;
  }

  forward(x: Tensor): Tensor {
    return softplus(x, this.options);
  }
}
