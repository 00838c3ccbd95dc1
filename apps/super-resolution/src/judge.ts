import {
  cropped,
  decibels,
  type Picture,
  resized,
  type ShrinkKernel,
  squaredError,
} from "./images.js";
import type { LayersModel } from "./keras/layers-model.js";
import { type Upscaler, upscale } from "./upscale.js";

/** How near to images one comes from what they were made smaller to: peak signal-to-noise ratios in dB over all pixels. */
export interface Judgement {
  readonly network: number;
  /** Cubic interpolation. */
  readonly interpolation: number;
}

/** Makes images smaller, enlarges them again, and compares. Sides that are no multiples of the scale lose their last pixels. */
export async function judge(
  upscaler: Upscaler,
  model: LayersModel,
  pictures: readonly Picture[],
  { kernel, tile }: { readonly kernel: ShrinkKernel; readonly tile?: number | undefined },
): Promise<Judgement> {
  const { scale } = model;
  let network = 0;
  let interpolation = 0;
  let values = 0;
  for (const picture of pictures) {
    const { width, height } = picture;
    const large = cropped(picture, {
      ...{ x: 0, y: 0 },
      width: width - (width % scale),
      height: height - (height % scale),
    });
    const small = await resized(large, 1 / scale, kernel);
    const ours = await upscale(upscaler, model, small, tile);
    const theirs = await resized(small, scale, "cubic");
    network += squaredError(ours.pixels, large.pixels);
    interpolation += squaredError(theirs.pixels, large.pixels);
    values += large.pixels.length;
  }
  return { network: decibels(network / values), interpolation: decibels(interpolation / values) };
}
