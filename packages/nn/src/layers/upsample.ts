import {
  type Tensor,
  type UpsampleBilinearOptions,
  upsampleBilinear2d,
  upsampleNearest2d,
} from "@halfstep/tensor";
import { Module } from "../module.js";

export interface UpsampleLayerOptions extends UpsampleBilinearOptions {
  /** Default "nearest". */
  readonly mode?: "nearest" | "bilinear";
}

/** Images [batch, height, width, channels] of another size: of a given one, or scaled. */
export class Upsample extends Module {
  readonly options: UpsampleLayerOptions;

  constructor(options: UpsampleLayerOptions) {
    super();
    this.options = options;
  }

  forward(x: Tensor): Tensor {
    const { mode = "nearest" } = this.options;
    return mode === "nearest"
      ? upsampleNearest2d(x, this.options)
      : upsampleBilinear2d(x, this.options);
  }
}
