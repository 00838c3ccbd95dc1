import {
  conv2d,
  type Generator,
  type Runtime,
  ShapeError,
  type Tensor,
  type Variable,
} from "@halfstep/tensor/functional";
import { requireArguments, requireTensors } from "../arguments.js";
import { defaultUniform, type Initializer, type InitOptions } from "../init.js";
import { Module, parameter } from "../module.js";
import type { TorchLayout } from "../torch-layout.js";
import { type Pair, pair, requireGroups, requireWindow } from "./pair.js";

/** Options of `Conv2d`; a pair is height and width. */
export interface Conv2dLayerOptions extends InitOptions {
  readonly kernelSize: Pair;
  /** Default 1. */
  readonly stride?: Pair;
  /** Zeros on each side. Default 0. */
  readonly padding?: Pair;
  /** Default 1. */
  readonly dilation?: Pair;
  /** Groups of neighbouring channels, each convolved alone; as many as there are channels is depthwise. Default 1. */
  readonly groups?: number;
  /** Default true. */
  readonly bias?: boolean;
  /** Draws the initial parameters, by default U(±1/√(kernelHeight · kernelWidth · inChannels / groups)) as in torch. */
  readonly generator: Generator;
}

/** Convolution of images [batch, height, width, inChannels]. */
export class Conv2d extends Module {
  readonly inChannels: number;
  readonly outChannels: number;
  readonly kernelSize: readonly [number, number];
  readonly stride: Pair;
  readonly padding: Pair;
  readonly dilation: Pair;
  readonly groups: number;
  /** [kernelHeight, kernelWidth, inChannels / groups, outChannels]; torch's is the transpose [3, 2, 0, 1] of it. */
  readonly weight: Variable;
  /** [outChannels] */
  readonly bias: Variable | undefined;

  constructor(
    runtime: Runtime,
    inChannels: number,
    outChannels: number,
    options: Conv2dLayerOptions,
  );
  constructor(
    runtime: Runtime,
    inChannels: number,
    outChannels: number,
    options: Conv2dLayerOptions,
    ...surplus: readonly unknown[]
  ) {
    super();
    const call =
      "new Conv2d(runtime, inChannels, outChannels, { kernelSize, generator, stride?, padding?, dilation?, groups?, bias?, weightInit?, biasInit? })";
    requireArguments(call, runtime, inChannels, outChannels, options, ...surplus);
    requireWindow(call, 2, options);
    const { kernelSize, stride = 1, padding = 0, dilation = 1, groups = 1 } = options;
    const { bias = true, generator, weightInit, biasInit } = options;
    requireGroups(call, groups, [inChannels, outChannels]);
    this.inChannels = inChannels;
    this.outChannels = outChannels;
    this.kernelSize = pair(kernelSize);
    this.stride = stride;
    this.padding = padding;
    this.dilation = dilation;
    this.groups = groups;
    const [height, width] = this.kernelSize;
    const groupChannels = inChannels / groups;
    const fanIn = height * width * groupChannels;
    const byDefault: Initializer = (shape) => defaultUniform(shape, generator, fanIn);
    const make = (shape: readonly number[], name: string, init = byDefault): Variable =>
      parameter(runtime, init(shape, generator), shape, name);
    this.weight = make([height, width, groupChannels, outChannels], "weight", weightInit);
    this.bias = bias ? make([outChannels], "bias", biasInit) : undefined;
  }

  override get torchLayout(): TorchLayout {
    return { orders: { weight: [3, 2, 0, 1] } };
  }

  /** @param x [batch, height, width, inChannels] */
  forward(x: Tensor): Tensor {
    requireTensors(this.label, x);
    if (x.rank !== 4 || x.shape[3] !== this.inChannels)
      throw new ShapeError(
        `${this.label} needs an input [batch, height, width, ${this.inChannels}], not [${x.shape}]`,
      );
    const { stride, padding, dilation, groups } = this;
    return conv2d(x, this.weight, this.bias, { stride, padding, dilation, groups });
  }
}
