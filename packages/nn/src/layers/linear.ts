import {
  type Generator,
  linear,
  type Runtime,
  ShapeError,
  type Tensor,
  type Variable,
} from "@halfstep/tensor";
import { defaultUniform } from "../init.js";
import { Module, parameter } from "../module.js";

export interface LinearOptions {
  /** Default true. */
  readonly bias?: boolean;
  /** Draws the initial parameters, U(±1/√inFeatures) as in torch. */
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

  constructor(
    runtime: Runtime,
    inFeatures: number,
    outFeatures: number,
    { bias = true, generator }: LinearOptions,
  ) {
    super();
    this.inFeatures = inFeatures;
    this.outFeatures = outFeatures;
    const make = (shape: readonly number[], name: string): Variable =>
      parameter(runtime, defaultUniform(shape, generator, inFeatures), shape, name);
    this.weight = make([outFeatures, inFeatures], "weight");
    this.bias = bias ? make([outFeatures], "bias") : undefined;
  }

  /** @param x [..., inFeatures] */
  forward(x: Tensor): Tensor {
    if (x.rank < 2 || x.shape.at(-1) !== this.inFeatures)
      throw new ShapeError(
        `${this.label} needs an input [..., ${this.inFeatures}] of at least two dimensions, not [${x.shape}]`,
      );
    return linear(x, this.weight, this.bias);
  }
}
