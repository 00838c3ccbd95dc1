import {
  ShapeError,
  type Tensor,
  upsampleBicubic2d,
  upsampleBilinear2d,
  upsampleLinear1d,
  upsampleNearest1d,
  upsampleNearest2d,
  upsampleNearest3d,
  upsampleTrilinear3d,
} from "@halfstep/tensor/functional";
import { requireArguments, requireTensors } from "../arguments.js";
import { Module } from "../module.js";

/** The interpolation, by torch's names. */
export type UpsampleMode =
  | "nearest"
  | "nearest-exact"
  | "linear"
  | "bilinear"
  | "bicubic"
  | "trilinear";

/** Options of `Upsample`. */
export interface UpsampleLayerOptions {
  /** Sizes of the result, outermost first: [length], [height, width], or [depth, height, width]; or `scale`. */
  readonly size?: readonly number[];
  /** All sizes times this, rounded down. */
  readonly scale?: number;
  /**
   * Default "nearest", which like "nearest-exact" takes sequences, images and volumes; "linear" takes sequences, "bilinear" and
   * "bicubic" images, "trilinear" volumes.
   */
  readonly mode?: UpsampleMode;
  /** Keep the corners in place, instead of the outer edges. Not where the nearest place counts. Default false. */
  readonly alignCorners?: boolean;
}

type Ranked = (x: Tensor, options: object) => Tensor;

/** By the rank of the input: sequences [batch, length, channels], images, volumes. */
const nearest: Readonly<Record<number, Ranked>> = {
  3: upsampleNearest1d,
  4: upsampleNearest2d,
  5: upsampleNearest3d,
};

const smooth: Readonly<Record<Exclude<UpsampleMode, "nearest" | "nearest-exact">, Ranked>> = {
  linear: upsampleLinear1d,
  bilinear: upsampleBilinear2d,
  bicubic: upsampleBicubic2d,
  trilinear: upsampleTrilinear3d,
};

/**
 * Sequences [batch, length, channels], images [batch, height, width, channels] or volumes [batch, depth, height, width, channels]
 * of another size: of a given one, or scaled.
 */
export class Upsample extends Module {
  readonly options: UpsampleLayerOptions;

  constructor(options: UpsampleLayerOptions);
  constructor(options: UpsampleLayerOptions, ...surplus: readonly unknown[]) {
    super();
    requireArguments("new Upsample({ size?, scale?, mode?, alignCorners? })", options, ...surplus);
    const { mode = "nearest", size, scale, alignCorners } = options ?? {};
    if ((size === undefined) === (scale === undefined))
      throw new RangeError(
        `Upsample: it has ${size ? "a size and a scale" : "neither a size nor a scale"}; give it one of them`,
      );
    if (alignCorners !== undefined && mode.startsWith("nearest"))
      throw new RangeError(
        `Upsample: alignCorners says where to look between places, which mode "${mode}" never does; leave it out`,
      );
    this.options = options;
  }

  forward(x: Tensor): Tensor {
    requireTensors(this.label, x);
    const { mode = "nearest", size, scale, alignCorners } = this.options;
    const options = { ...(size && { size }), ...(scale && { scale }) };
    if (mode !== "nearest" && mode !== "nearest-exact")
      return smooth[mode](x, { ...options, ...(alignCorners && { alignCorners }) });
    const upsample = nearest[x.rank];
    if (!upsample)
      throw new ShapeError(
        `${this.label} needs an input [batch, length, channels], [batch, height, width, channels] or [batch, depth, height, width, channels], not [${x.shape}]`,
      );
    return upsample(x, { ...options, exact: mode === "nearest-exact" });
  }
}
