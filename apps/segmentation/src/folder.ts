import { readdirSync } from "node:fs";
import { join, parse } from "node:path";
import { DataError, permutation } from "@halfstep/data";
import { unreadable } from "@halfstep/data/node";
import { readClassTable } from "./class-table.js";
import { classesIn, labelsIn, type Mask, readMask } from "./masks.js";
import { type Picture, readPicture } from "./pictures.js";
import type { Scene, SceneSet } from "./scene.js";

export interface FolderOptions {
  /** Both sides of pictures and masks times this. */
  readonly scale: number;
  /** Share of the pictures that is held out, from 0 to 1, both excluded. */
  readonly validation: number;
  /** A file that names the classes: see {@link readClassTable}. Default: those that the masks have. */
  readonly classes?: string | undefined;
  /** By which the held-out ones are chosen. */
  readonly seed: number;
}

/**
 * Pictures and masks of a folder that is laid out as milesial/Pytorch-UNet has it: `imgs/NAME.jpg` goes with `masks/NAME.png`
 * or `masks/NAME_mask.png`. Each grey, palette index or colour of the masks is a class, in their order, or a table names them.
 * @throws DataError where something is missing, unreadable, or not as large as its partner, or a mask has what is no class
 */
export async function readFolder(directory: string, options: FolderOptions): Promise<SceneSet> {
  const images = filesOf(join(directory, "imgs"));
  const masks = filesOf(join(directory, "masks"));
  if (images.size < 2)
    throw new DataError(
      join(directory, "imgs"),
      `has ${images.size} pictures: at least one to learn from and one to hold out are needed`,
    );
  const pairs: { name: string; image: Picture; mask: Mask }[] = [];
  for (const [name, path] of images) {
    const maskPath = masks.get(name) ?? masks.get(`${name}_mask`);
    if (maskPath === undefined)
      throw new DataError(path, `has no mask ${name}.png in ${join(directory, "masks")}`);
    const image = await readPicture(path, { channels: 3, scale: options.scale });
    const mask = await readMask(maskPath, options.scale);
    if (image.height !== mask.height || image.width !== mask.width)
      throw new DataError(
        maskPath,
        `is ${mask.width}×${mask.height} where ${path} is ${image.width}×${image.height}, both at scale ${options.scale}`,
      );
    pairs.push({ name, image, mask });
  }
  const known = options.classes === undefined ? undefined : await readClassTable(options.classes);
  const classes =
    known ??
    classesIn(
      join(directory, "masks"),
      pairs.map(({ mask }) => mask),
    );
  const scenes = pairs.map(
    ({ name, image, mask }): Scene => ({ ...image, name, labels: labelsIn(mask, classes) }),
  );
  const held = Math.min(
    scenes.length - 1,
    Math.max(1, Math.round(scenes.length * options.validation)),
  );
  const order = permutation(scenes.length, options.seed, 0);
  const chosen = (indices: Uint32Array): Scene[] => [...indices].map((i) => scenes[i] as Scene);
  return {
    name: directory,
    channels: 3,
    ...classes,
    scale: options.scale,
    flips: true,
    train: chosen(order.subarray(held)),
    heldOut: chosen(order.subarray(0, held)),
  };
}

/** Paths by file name without extension. */
function filesOf(directory: string): ReadonlyMap<string, string> {
  try {
    const names = readdirSync(directory).filter((name) =>
      /\.(png|jpe?g|webp|tiff?|gif)$/i.test(name),
    );
    return new Map(names.sort().map((name) => [parse(name).name, join(directory, name)]));
  } catch (error) {
    throw unreadable(directory, error);
  }
}
