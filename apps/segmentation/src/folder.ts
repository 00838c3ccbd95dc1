import { readdirSync } from "node:fs";
import { join, parse } from "node:path";
import { DataError, permutation } from "@halfstep/data";
import { unreadable } from "@halfstep/data/node";
import { readClassTable } from "./class-table.js";
import { classesIn, labelsIn, type Mask, readMask } from "./masks.js";
import { type Picture, readPicture } from "./pictures.js";
import type { Scene, SceneSet } from "./scene.js";

export interface FolderOptions {
  /** Factor of both sides of pictures and masks. */
  readonly scale: number;
  /** Share of the pictures that is held out, from 0 to 1, both excluded. */
  readonly validation: number;
  /** A table of the classes: see {@link readClassTable}. Default: the values in the masks. */
  readonly classes?: string | undefined;
  /** Seed of the choice of held-out pictures. */
  readonly seed: number;
}

/**
 * Pictures and masks of a folder in the layout of milesial/Pytorch-UNet: `imgs/NAME.jpg` with `masks/NAME.png` or
 * `masks/NAME_mask.png`. Each grey, palette index or colour of the masks is a class, in their order, or a table names them.
 * @throws DataError where a file is missing, unreadable, or differs in size from its partner, or a mask has an unknown
 * class
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
