import {
  type Generator,
  linear,
  type Runtime,
  ShapeError,
  squeeze,
  type Tensor,
  unsqueeze,
  type Variable,
} from "@halfstep/tensor/functional";
import { requireArguments, requireTensors } from "../arguments.js";
import { defaultUniform, type Initializer, type InitOptions } from "../init.js";
import { Module, parameter } from "../module.js";

/** Options of {@link Linear}. */
export interface LinearOptions extends InitOptions {
  /** Default true. */
  readonly bias?: boolean;
  /** Draws the initial parameters, by default U(±1/√inFeatures) as in torch. */
  readonly generator: Generator;
}

/** y = x Wᵀ + b over the last dimension. */
export class Linear extends Module {
  readonly inFeatures: number;
  readonly outFeatures: number;
  /** [outFeatures, inFeatures] */
  readonly weight: Variable;
  /** [outFeatures] */
  readonly bias: Variable | undefined;

  constructor(runtime: Runtime, inFeatures: number, outFeatures: number, options: LinearOptions);
  constructor(
    runtime: Runtime,
    inFeatures: number,
    outFeatures: number,
    options: LinearOptions,
    ...surplus: readonly unknown[]
  ) {
    super();
    requireArguments(
      "new Linear(runtime, inFeatures, outFeatures, { generator, bias?, weightInit?, biasInit? })",
      runtime,
      inFeatures,
      outFeatures,
      options,
      ...surplus,
    );
    const { bias = true, generator, weightInit, biasInit } = options;
    this.inFeatures = inFeatures;
    this.outFeatures = outFeatures;
    const byDefault: Initializer = (shape) => defaultUniform(shape, generator, inFeatures);
    const make = (shape: readonly number[], name: string, init = byDefault): Variable =>
      parameter(runtime, init(shape, generator), shape, name);
    this.weight = make([outFeatures, inFeatures], "weight", weightInit);
    this.bias = bias ? make([outFeatures], "bias", biasInit) : undefined;
  }

  /** @param x [..., inFeatures], or one vector [inFeatures] */
  forward(x: Tensor): Tensor {
    requireTensors(this.label, x);
    if (x.shape.at(-1) !== this.inFeatures)
      throw new ShapeError(
        `${this.label} needs an input [..., ${this.inFeatures}], not [${x.shape}]`,
      );
    if (x.rank === 1) return squeeze(linear(unsqueeze(x, 0), this.weight, this.bias), 0);
    return linear(x, this.weight, this.bias);
  }
}
