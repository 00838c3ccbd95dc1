import { DataError, permutation } from "@halfstep/data";
import { readClassTable } from "./class-table.js";
import { classesIn, labelsIn, type Mask, type MaskClasses, namedIn, readMask } from "./masks.js";
import { findPairs, type Pair, type SplitName, splitNames } from "./pairs.js";
import { type FilePicture, readPicture } from "./pictures.js";
import type { Scene, SceneSet } from "./scene.js";

export interface FolderOptions {
  /** Factor of both sides of pictures and masks. */
  readonly scale: number;
  /** Share of the pictures that is held out where the folder is not divided, from 0 to 1, both excluded. */
  readonly validation: number;
  /** Which part of a folder that is divided is held out. Default: val, else test. */
  readonly split?: SplitName | undefined;
  /** A table of the classes: see {@link readClassTable}. Default: `known`. */
  readonly classes?: string | undefined;
  /** The classes of a network that is tested. Default: the values in the masks. */
  readonly known?: MaskClasses | undefined;
  /** The pixels that do not count: a class of the table, a number, or a colour. */
  readonly ignoreLabel?: string | undefined;
  /** Seed of the choice of held-out pictures. */
  readonly seed: number;
}

/** Files to learn from, and held-out ones. */
interface Division {
  readonly train: readonly Pair[];
  readonly heldOut: readonly Pair[];
}

/**
 * Pictures and masks of a folder: see {@link findPairs} for its layouts. Each grey, palette index or colour of the masks is a class, in
 * their order, or a table names them. Where the folder is divided, `val` (or `test`) is held out.
 * @throws DataError where a file is missing, unreadable, or differs in size from its partner, or a mask has an unknown
 * class
 */
export async function readFolder(directory: string, options: FolderOptions): Promise<SceneSet> {
  const { scale, ignoreLabel } = options;
  const division = await divide(directory, options);
  const read = (pairs: readonly Pair[]): Promise<readonly Painted[]> => paintedOf(pairs, scale);
  const painted = { train: await read(division.train), heldOut: await read(division.heldOut) };
  const masks = [...painted.train, ...painted.heldOut].map(({ mask }) => mask);
  const table =
    options.classes === undefined ? options.known : await readClassTable(options.classes);
  const classes = refusing(directory, () =>
    table ? namedIn(table, masks, ignoreLabel) : classesIn(directory, masks, ignoreLabel),
  );
  const scenes = (part: readonly Painted[]): Scene[] =>
    part.map(({ name, path, image: { fileSize, ...image }, mask }) => ({
      ...{ ...image, name, labels: labelsIn(mask, classes) },
      file: { ...fileSize, path, scale },
    }));
  return {
    ...{ name: directory, channels: 3, ...classes, scale, flips: true },
    ...{ train: scenes(painted.train), heldOut: scenes(painted.heldOut) },
  };
}

async function divide(
  directory: string,
  { validation, split, seed }: FolderOptions,
): Promise<Division> {
  const found = await findPairs(directory);
  if ("splits" in found) {
    const name = split ?? splitNames.find((each) => each !== "train" && found.splits.has(each));
    const heldOut = name && found.splits.get(name);
    if (!heldOut)
      throw new DataError(
        directory,
        `has no part ${name ?? "val or test"}: there are ${[...found.splits.keys()].join(" and ")}`,
      );
    return { train: found.splits.get("train") as readonly Pair[], heldOut };
  }
  if (split !== undefined)
    throw new DataError(directory, `is not divided into parts, of which --split could choose one`);
  const { all } = found;
  if (all.length < 2)
    throw new DataError(
      directory,
      `has ${all.length} pictures: at least one to learn from and one to hold out are needed`,
    );
  const held = Math.min(all.length - 1, Math.max(1, Math.round(all.length * validation)));
  const order = permutation(all.length, seed, 0);
  const chosen = (indices: Uint32Array): Pair[] => [...indices].map((i) => all[i] as Pair);
  return { train: chosen(order.subarray(held)), heldOut: chosen(order.subarray(0, held)) };
}

/** A picture with its mask. */
interface Painted {
  readonly name: string;
  readonly path: string;
  readonly image: FilePicture;
  readonly mask: Mask;
}

async function paintedOf(pairs: readonly Pair[], scale: number): Promise<readonly Painted[]> {
  const painted: Painted[] = [];
  for (const { name, ...paths } of pairs) {
    const image = await readPicture(paths.image, { channels: 3, scale });
    const mask = await readMask(paths.mask, scale);
    const [one, other] = [mask.fileSize, image.fileSize];
    if (one.height !== other.height || one.width !== other.width)
      throw new DataError(
        paths.mask,
        `has ${one.width}×${one.height} pixels, and ${paths.image} has ${other.width}×${other.height}: save the mask in the size of its picture`,
      );
    painted.push({ name, path: paths.image, image, mask });
  }
  return painted;
}

/** A wrong label becomes an error of the data. */
function refusing<T>(directory: string, find: () => T): T {
  try {
    return find();
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    throw new DataError(directory, `--ignore-label: ${error.message}`);
  }
}
