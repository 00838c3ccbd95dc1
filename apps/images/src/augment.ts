import { philox4x32 } from "@halfstep/formats/philox";

/** Returns the next number from [0, 1). */
export type Random = () => number;

/**
 * Random numbers for the augmentation of one image in one epoch: Philox4x32-10 with the seed as key and (block, image, epoch, 1)
 * as counter. They depend on (seed, epoch, image) only, independent of earlier and parallel decoding.
 */
export function randomOf(seed: number, epoch: number, image: number): Random {
  const key = [seed >>> 0, Math.floor(seed / 2 ** 32)] as const;
  let words: readonly number[] = [];
  let used = 0;
  return () => {
    if (used % 4 === 0) words = philox4x32([used / 4, image, epoch, 1], key);
    return (words[used++ % 4] as number) / 2 ** 32;
  };
}

/** A part of an image, in pixels. */
export interface Crop {
  readonly left: number;
  readonly top: number;
  readonly width: number;
  readonly height: number;
}

/**
 * The crop of torchvision's `RandomResizedCrop`: `minScale` to 1 of the image's area, with sides from 3 : 4 to 4 : 3, uniform in
 * the logarithm; after ten that do not fit, the largest central crop.
 */
export function randomResizedCrop(
  { width, height }: Pick<Crop, "width" | "height">,
  minScale: number,
  random: Random,
): Crop {
  for (let attempt = 0; attempt < 10; attempt++) {
    const area = width * height * (minScale + (1 - minScale) * random());
    const ratio = Math.exp(Math.log(3 / 4) + (Math.log(4 / 3) - Math.log(3 / 4)) * random());
    const w = Math.round(Math.sqrt(area * ratio));
    const h = Math.round(Math.sqrt(area / ratio));
    if (w < 1 || h < 1 || w > width || h > height) continue;
    const top = Math.floor(random() * (height - h + 1));
    const left = Math.floor(random() * (width - w + 1));
    return { left, top, width: w, height: h };
  }
  const ratio = width / height;
  const w = ratio > 4 / 3 ? Math.round((height * 4) / 3) : width;
  const h = ratio < 3 / 4 ? Math.round((width * 4) / 3) : height;
  return {
    left: Math.floor((width - w) / 2),
    top: Math.floor((height - h) / 2),
    width: Math.min(w, width),
    height: Math.min(h, height),
  };
}

/** The shift of an image of fixed size: by up to `pad` pixels in each direction, mirrored or not. */
export interface Shift {
  readonly down: number;
  readonly right: number;
  readonly isMirrored: boolean;
}

/** A random crop of an image padded by `pad` pixels, and a random flip, as on CIFAR since He et al. 2015. */
export function randomShift(pad: number, flip: boolean, random: Random): Shift {
  const offset = (): number => Math.floor(random() * (2 * pad + 1)) - pad;
  return { down: offset(), right: offset(), isMirrored: flip && random() < 0.5 };
}
