import { encodePng } from "@halfstep/trainer/node";
import type { Sample, SamplePicture } from "@halfstep/trainer/report";
import { cropped, type Picture, resized, type ShrinkKernel } from "./images.js";
import type { LayersModel } from "./keras/layers-model.js";
import type { JudgedPicture } from "./pairs.js";
import { type Upscaler, upscale } from "./upscale.js";

/** Pixels of a side that are shown, at most. */
const side = 128;

/** A part of an image to judge by, enlarged before training and after it. */
export class BeforeAndAfter {
  readonly #large: Picture;
  readonly #small: Picture;
  readonly #cubic: Picture;
  readonly #model: LayersModel;
  #before: Picture | undefined;

  private constructor(model: LayersModel, large: Picture, small: Picture, cubic: Picture) {
    this.#model = model;
    this.#large = large;
    this.#small = small;
    this.#cubic = cubic;
  }

  /** Takes the centre of the part that is used for evaluation. */
  static async of(
    model: LayersModel,
    { picture, area }: JudgedPicture,
    kernel: ShrinkKernel,
  ): Promise<BeforeAndAfter> {
    const { scale } = model;
    const length = (whole: number): number =>
      Math.max(1, Math.floor(Math.min(side, whole) / scale)) * scale;
    const [width, height] = [length(area.width), length(area.height)];
    const x = area.x + Math.floor((area.width - width) / 2);
    const y = area.y + Math.floor((area.height - height) / 2);
    const large = cropped(picture, { x, y, width, height });
    const small = await resized(large, 1 / scale, kernel);
    return new BeforeAndAfter(model, large, small, await resized(small, scale, "cubic"));
  }

  /** Enlarges before training. */
  async before(upscaler: Upscaler): Promise<void> {
    this.#before = await upscale(upscaler, this.#model, this.#small);
  }

  /** Enlarges the samples after training, and returns the pictures of the report. */
  async after(upscaler: Upscaler): Promise<readonly Sample[]> {
    const after = await upscale(upscaler, this.#model, this.#small);
    const shown: readonly (readonly [caption: string, picture: Picture | undefined])[] = [
      ["cubic interpolation", this.#cubic],
      ["before training", this.#before],
      ["after training", after],
      ["truth", this.#large],
    ];
    const pictures = shown.flatMap(([caption, picture]): SamplePicture[] =>
      picture
        ? [{ caption, bytes: encodePng({ ...picture, channels: 3 }), width: 1.5 * side }]
        : [],
    );
    return [{ title: "a part of an image that training has not seen", pictures }];
  }
}
