import {
  type Conv1dOptions,
  type ConvTranspose1dOptions,
  conv1d,
  convTranspose1d,
  type Generator,
  type Runtime,
  type Tensor,
  type Variable,
} from "@halfstep/tensor/functional";
import { requireArguments } from "../arguments.js";
import { defaultUniform } from "../init.js";
import { Module, parameter } from "../module.js";
import type { TorchLayout } from "../torch-layout.js";
import { requireGroups, requireWindow } from "./pair.js";

interface LayerOptions {
  readonly kernelSize: number;
  /** Default true. */
  readonly bias?: boolean;
  /** Draws the initial parameters, as torch does. */
  readonly generator: Generator;
}

/** Options of `Conv1d`. */
export type Conv1dLayerOptions = LayerOptions & Conv1dOptions;
/** Options of `ConvTranspose1d`. */
export type ConvTranspose1dLayerOptions = LayerOptions & ConvTranspose1dOptions;

/** Convolution of sequences [batch, length, inChannels]. */
export class Conv1d extends Module {
  readonly options: Conv1dOptions;
  /** [kernelSize, inChannels / groups, outChannels] */
  readonly weight: Variable;
  /** [outChannels] */
  readonly bias: Variable | undefined;

  constructor(runtime: Runtime, inChannels: number, outChannels: number, given: Conv1dLayerOptions);
  constructor(
    runtime: Runtime,
    inChannels: number,
    outChannels: number,
    given: Conv1dLayerOptions,
    ...surplus: readonly unknown[]
  ) {
    super();
    const call =
      "new Conv1d(runtime, inChannels, outChannels, { kernelSize, generator, stride?, padding?, dilation?, groups?, bias? })";
    requireArguments(call, runtime, inChannels, outChannels, given, ...surplus);
    requireWindow(call, 1, given);
    const { kernelSize, bias = true, generator, ...options } = given;
    this.options = options;
    const { groups = 1 } = options;
    requireGroups(call, groups, [inChannels, outChannels]);
    const groupChannels = inChannels / groups;
    const make = (shape: readonly number[], name: string): Variable =>
      parameter(runtime, defaultUniform(shape, generator, kernelSize * groupChannels), shape, name);
    this.weight = make([kernelSize, groupChannels, outChannels], "weight");
    this.bias = bias ? make([outChannels], "bias") : undefined;
  }

  override get torchLayout(): TorchLayout {
    return { orders: { weight: [2, 1, 0] } };
  }

  /** @param x [batch, length, inChannels] */
  forward(x: Tensor): Tensor {
    return conv1d(x, this.weight, this.bias, this.options);
  }
}

/** Transposed convolution of sequences [batch, length, inChannels]. */
export class ConvTranspose1d extends Module {
  readonly options: ConvTranspose1dOptions;
  /** [kernelSize, outChannels / groups, inChannels] */
  readonly weight: Variable;
  /** [outChannels] */
  readonly bias: Variable | undefined;

  constructor(
    runtime: Runtime,
    inChannels: number,
    outChannels: number,
    given: ConvTranspose1dLayerOptions,
  );
  constructor(
    runtime: Runtime,
    inChannels: number,
    outChannels: number,
    given: ConvTranspose1dLayerOptions,
    ...surplus: readonly unknown[]
  ) {
    super();
    const call =
      "new ConvTranspose1d(runtime, inChannels, outChannels, { kernelSize, generator, stride?, padding?, outputPadding?, dilation?, groups?, bias? })";
    requireArguments(call, runtime, inChannels, outChannels, given, ...surplus);
    requireWindow(call, 1, given);
    const { kernelSize, bias = true, generator, ...options } = given;
    this.options = options;
    const { groups = 1 } = options;
    requireGroups(call, groups, [inChannels, outChannels]);
    const groupChannels = outChannels / groups;
    const make = (shape: readonly number[], name: string): Variable =>
      parameter(runtime, defaultUniform(shape, generator, kernelSize * groupChannels), shape, name);
    this.weight = make([kernelSize, groupChannels, inChannels], "weight");
    this.bias = bias ? make([outChannels], "bias") : undefined;
  }

  override get torchLayout(): TorchLayout {
    return { orders: { weight: [2, 1, 0] } };
  }

  /** @param x [batch, length, inChannels] */
  forward(x: Tensor): Tensor {
    return convTranspose1d(x, this.weight, this.bias, this.options);
  }
}
