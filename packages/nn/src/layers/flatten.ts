import type { Tensor } from "@halfstep/tensor/functional";
import { requireArguments, requireTensors } from "../arguments.js";
import { Module } from "../module.js";

/** Options of {@link Flatten}. Negative axes count from the end. */
export interface FlattenOptions {
  /** The first axis that is joined. Default 1, which keeps the batch. */
  readonly startAxis?: number;
  /** The last axis that is joined. Default -1. */
  readonly endAxis?: number;
  /**
   * Whether images [batch, height, width, channels] are joined as torch joins them, channels first. A `Linear` behind it then has the columns of
   * torch, and its weights go to torch and back. It costs one copy. Default false: height, width, channels.
   */
  readonly channelsFirst?: boolean;
}

/**
 * Joins axes into one, as torch.nn.Flatten: by default [batch, ...] becomes [batch, features].
 *
 * ```ts
 * const lenet = new Sequential(conv, new ReLU(), new Flatten({ channelsFirst: true }), linear);
 * loadTorchStateDict(lenet, saved);
 * ```
 */
export class Flatten extends Module {
  readonly startAxis: number;
  readonly endAxis: number;
  readonly channelsFirst: boolean;

  constructor(options?: FlattenOptions);
  constructor(options: FlattenOptions = {}, ...surplus: readonly unknown[]) {
    super();
    requireArguments("new Flatten({ startAxis?, endAxis?, channelsFirst? })", options, ...surplus);
    const { startAxis = 1, endAxis = -1, channelsFirst = false } = options;
    this.startAxis = startAxis;
    this.endAxis = endAxis;
    this.channelsFirst = channelsFirst;
  }

  /** @throws RangeError where `x` has no such axes, or `startAxis` is behind `endAxis` */
  forward(x: Tensor): Tensor {
    requireTensors(this.label, x);
    const { shape, rank } = x;
    const [start, end] = [this.startAxis, this.endAxis].map((axis) =>
      axis < 0 ? axis + rank : axis,
    ) as [number, number];
    // One axis [length] stays as it is, [length, 1]: there is a batch and no features.
    if (this.startAxis === 1 && rank === 1) return x.reshape([...shape, 1]);
    if (start < 0 || start > end || end >= rank)
      throw new RangeError(
        `${this.label} joins the axes ${this.startAxis} to ${this.endAxis}: [${shape}] has no such axes`,
      );
    // A size of -1 would not be known for an empty batch.
    const joined = shape.slice(start, end + 1).reduce((a, b) => a * b, 1);
    const axes = Array.from({ length: rank }, (_, axis) => axis);
    const isMoved = this.channelsFirst && end > start;
    const ordered = isMoved
      ? x.permute([...axes.slice(0, start), end, ...axes.slice(start, end), ...axes.slice(end + 1)])
      : x;
    return ordered.reshape([...shape.slice(0, start), joined, ...shape.slice(end + 1)]);
  }
}
