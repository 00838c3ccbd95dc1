import {
  cropped,
  decibels,
  type Picture,
  resized,
  type ShrinkKernel,
  squaredError,
} from "./images.js";
import type { LayersModel } from "./keras/layers-model.js";
import type { JudgedPicture } from "./pairs.js";
import { type Upscaler, upscale } from "./upscale.js";

/** The accuracy of images that are enlarged from smaller versions: peak signal-to-noise ratios in dB over all pixels. */
export interface Judgement {
  readonly network: number;
  /** Cubic interpolation. */
  readonly interpolation: number;
}

/** Makes images smaller, enlarges them again, and compares. Sides that are no multiples of the scale lose their last pixels. */
export async function judge(
  upscaler: Upscaler,
  model: LayersModel,
  pictures: readonly JudgedPicture[],
  { kernel, tile }: { readonly kernel: ShrinkKernel; readonly tile?: number | undefined },
): Promise<Judgement> {
  const { scale } = model;
  let network = 0;
  let interpolation = 0;
  let values = 0;
  for (const { picture, area } of pictures) {
    const { width, height } = picture;
    const [right, bottom] = [width - (width % scale), height - (height % scale)];
    const large = cropped(picture, { x: 0, y: 0, width: right, height: bottom });
    const small = await resized(large, 1 / scale, kernel);
    const judged = {
      ...area,
      width: Math.min(area.width, right - area.x),
      height: Math.min(area.height, bottom - area.y),
    };
    const { pixels: expected } = cropped(large, judged);
    const errorOf = (enlarged: Picture): number =>
      squaredError(cropped(enlarged, judged).pixels, expected);
    network += errorOf(await upscale(upscaler, model, small, tile));
    interpolation += errorOf(await resized(small, scale, "cubic"));
    values += expected.length;
  }
  return { network: decibels(network / values), interpolation: decibels(interpolation / values) };
}
