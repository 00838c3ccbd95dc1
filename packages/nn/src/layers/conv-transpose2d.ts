import {
  type ConvTranspose2dOptions,
  convTranspose2d,
  type Generator,
  type Runtime,
  type Tensor,
  type Variable,
} from "@halfstep/tensor/functional";
import { requireArguments } from "../arguments.js";
import { defaultUniform } from "../init.js";
import { Module, parameter } from "../module.js";
import type { TorchLayout } from "../torch-layout.js";
import { type Pair, pair, requireGroups, requireWindow } from "./pair.js";

/** Options of `ConvTranspose2d`; a pair is height and width. */
export interface ConvTranspose2dLayerOptions extends ConvTranspose2dOptions {
  readonly kernelSize: Pair;
  /** Default true. */
  readonly bias?: boolean;
  /** Draws the initial parameters, U(±1/√(kernelHeight · kernelWidth · outChannels / groups)) as in torch. */
  readonly generator: Generator;
}

/** Transposed convolution of images [batch, height, width, inChannels]: it makes them larger by its stride. */
export class ConvTranspose2d extends Module {
  readonly options: ConvTranspose2dOptions;
  /** [kernelHeight, kernelWidth, outChannels / groups, inChannels]; torch's is the transpose [3, 2, 0, 1] of it. */
  readonly weight: Variable;
  /** [outChannels] */
  readonly bias: Variable | undefined;

  constructor(
    runtime: Runtime,
    inChannels: number,
    outChannels: number,
    given: ConvTranspose2dLayerOptions,
  );
  constructor(
    runtime: Runtime,
    inChannels: number,
    outChannels: number,
    given: ConvTranspose2dLayerOptions,
    ...surplus: readonly unknown[]
  ) {
    super();
    const call =
      "new ConvTranspose2d(runtime, inChannels, outChannels, { kernelSize, generator, stride?, padding?, outputPadding?, dilation?, groups?, bias? })";
    requireArguments(call, runtime, inChannels, outChannels, given, ...surplus);
    requireWindow(call, 2, given);
    const { kernelSize, bias = true, generator, ...options } = given;
    this.options = options;
    const [height, width] = pair(kernelSize);
    const { groups = 1 } = options;
    requireGroups(call, groups, [inChannels, outChannels]);
    const groupChannels = outChannels / groups;
    const fanIn = height * width * groupChannels;
    const make = (shape: readonly number[], name: string): Variable =>
      parameter(runtime, defaultUniform(shape, generator, fanIn), shape, name);
    this.weight = make([height, width, groupChannels, inChannels], "weight");
    this.bias = bias ? make([outChannels], "bias") : undefined;
  }

  override get torchLayout(): TorchLayout {
    return { orders: { weight: [3, 2, 0, 1] } };
  }

  /** @param x [batch, height, width, inChannels] */
  forward(x: Tensor): Tensor {
    return convTranspose2d(x, this.weight, this.bias, this.options);
  }
}
