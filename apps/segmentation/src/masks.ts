import { DataError } from "@halfstep/data";
import { fileBytes } from "@halfstep/data/node";
import { writeWholeFile } from "@halfstep/trainer/node";
import { encode } from "fast-png";
import sharp, { type Sharp } from "sharp";
import { type Colour, readPalettePng, writePalettePng } from "./palette-png.js";
import { firstLine, requirePixels, type Size } from "./pictures.js";

/** The kinds of a mask's pixels: greys, indices of a palette, or colours as 0xRRGGBB. */
export const maskKinds = ["grey", "palette", "colour"] as const;
export type MaskKind = (typeof maskKinds)[number];

/** The content of a mask file. */
export interface Mask {
  readonly path: string;
  readonly kind: MaskKind;
  readonly height: number;
  readonly width: number;
  /** Its size before scaling. */
  readonly fileSize: Size;
  /** [height, width] */
  readonly values: Uint32Array;
  /** Of kind "palette": the colour of each index. */
  readonly palette?: readonly Colour[];
}

/**
 * Reads a mask. PNG files with a palette are read by index, others by grey, of up to 16 bits, or by colour.
 * @param scale Factor of both sides. The nearest pixel is taken, so that no new value appears.
 * @throws DataError where it cannot be read, or is a JPEG, whose compression changes values
 */
export async function readMask(path: string, scale: number): Promise<Mask> {
  const bytes = await fileBytes(path);
  try {
    const image = sharp(bytes, { limitInputPixels: false, ignoreIcc: true });
    const { width, height, format, depth } = await image.metadata();
    requirePixels(path, { width, height });
    if (format === "jpeg")
      throw new DataError(
        path,
        "is a JPEG, whose noise makes classes of its own: save masks as PNG",
      );
    const indexed = readPalettePng(bytes);
    const size = { height, width };
    const content = indexed
      ? ({ kind: "palette", ...indexed, values: Uint32Array.from(indexed.indices) } as const)
      : await valuesOf(image, depth === "ushort");
    return scaled({ path, ...content, ...size, fileSize: size }, scale);
  } catch (error) {
    if (error instanceof DataError) throw error;
    throw new DataError(path, `cannot be read as a mask (${firstLine(error)})`);
  }
}

/** Greys where the image has no colours, otherwise colours. */
async function valuesOf(image: Sharp, isDeep: boolean): Promise<Pick<Mask, "kind" | "values">> {
  const { data, info } = await image
    .removeAlpha()
    .toColourspace(isDeep ? "rgb16" : "srgb")
    .raw({ depth: isDeep ? "ushort" : "uchar" })
    .toBuffer({ resolveWithObject: true });
  const { channels } = info;
  const samples = isDeep
    ? new Uint16Array(data.buffer, data.byteOffset, data.byteLength / 2)
    : data;
  const pixels = info.width * info.height;
  const at = (pixel: number, channel: number): number =>
    samples[pixel * channels + Math.min(channel, channels - 1)] as number;
  let isGrey = true;
  for (let i = 0; isGrey && i < pixels; i++)
    isGrey = at(i, 0) === at(i, 1) && at(i, 1) === at(i, 2);
  if (isGrey) return { kind: "grey", values: new Uint32Array(pixels).map((_, i) => at(i, 0)) };
  if (isDeep) throw new Error("it has colours of 16 bits a channel: save it with 8");
  return {
    kind: "colour",
    values: new Uint32Array(pixels).map((_, i) => rgb([at(i, 0), at(i, 1), at(i, 2)])),
  };
}

const rgb = ([red, green, blue]: Colour): number => (red << 16) | (green << 8) | blue;

/** The colour of a value of kind "colour". */
export const colourOf = (value: number): Colour => [value >> 16, (value >> 8) & 255, value & 255];

function scaled(mask: Mask, scale: number): Mask {
  if (scale === 1) return mask;
  const height = Math.max(1, Math.round(mask.height * scale));
  const width = Math.max(1, Math.round(mask.width * scale));
  requirePixels(mask.path, { height, width });
  const values = new Uint32Array(height * width);
  for (let y = 0, to = 0; y < height; y++) {
    const row = nearest(y, height, mask.height) * mask.width;
    for (let x = 0; x < width; x++)
      values[to++] = mask.values[row + nearest(x, width, mask.width)] as number;
  }
  return { ...mask, height, width, values };
}

/** The place in so many pixels from which place i of a scaled row or column is taken. */
const nearest = (i: number, length: number, from: number): number =>
  Math.min(from - 1, Math.floor(((i + 0.5) * from) / length));

/** Where the file has a pixel of a mask, for people. */
function placeOf(i: number, { height, width, fileSize }: Mask): string {
  const column = nearest(i % width, width, fileSize.width);
  const row = nearest(Math.floor(i / width), height, fileSize.height);
  return `column ${column} of row ${row}`;
}

/** The classes of masks, and their values in masks. */
export interface MaskClasses {
  readonly maskKind: MaskKind;
  /** Names. */
  readonly classes: readonly string[];
  /** The grey, the index or the colour of each class. */
  readonly maskValues: readonly number[];
  /** The one of pixels that do not count. */
  readonly ignoredValue?: number | undefined;
  /** Of kind "palette". */
  readonly palette?: readonly Colour[] | undefined;
}

/** The part of classes that writing masks needs. */
export type MaskShown = Pick<MaskClasses, "maskValues" | "palette"> & {
  /** Default: grey. */
  readonly maskKind?: MaskKind | undefined;
};

/** Most classes that are taken from masks; more require a table. */
const mostFound = 64;

/** The label of pixels that do not count: their masks say so, or another tile has them. */
export const ignored = 255;

/** Labels are bytes, and the last one is {@link ignored}. */
export const mostClasses = 255;

/**
 * The classes in masks: each grey, index or colour is one, in ascending order. Masks with different palettes or of different kinds
 * are compared by colour.
 * @param ignore The value of pixels that do not count, as text: see {@link maskValueOf}.
 * @throws DataError for one class, for so many that they probably come from smoothed edges, and for greys beside palettes
 */
export function classesIn(directory: string, masks: readonly Mask[], ignore?: string): MaskClasses {
  requireOneMeaning(directory, masks);
  const maskKind = kindOf(masks);
  const ignoredValue = ignore === undefined ? undefined : maskValueOf(ignore, maskKind);
  const found = new Set<number>();
  for (const mask of masks) for (const value of valuesAs(mask, maskKind)) found.add(value);
  if (ignoredValue !== undefined) found.delete(ignoredValue);
  const maskValues = [...found].sort((a, b) => a - b);
  const noun = { grey: "grey", palette: "index", colour: "colour" }[maskKind];
  const nouns = maskKind === "palette" ? "indices" : `${noun}s`;
  if (maskValues.length < 2)
    throw new DataError(directory, `has masks of one ${noun}: there is nothing to learn`);
  const most = maskKind === "palette" ? mostClasses : mostFound;
  if (maskValues.length > most)
    throw new DataError(
      directory,
      `has masks of ${maskValues.length} ${nouns}, where at most ${most} are taken for classes: save masks without smooth edges and losses, or name their classes with --classes FILE`,
    );
  return {
    maskKind,
    maskValues,
    classes: maskValues.map((value) => (maskKind === "colour" ? hex(value) : `${noun} ${value}`)),
    ...(ignoredValue !== undefined && { ignoredValue }),
    ...(maskKind === "palette" && { palette: masks[0]?.palette }),
  };
}

/**
 * Classes of a table, as masks have them: named indices keep the palette of the masks.
 * @param ignore The pixels that do not count: the name of a class, which is none then, or a value as {@link maskValueOf} reads it.
 */
export function namedIn(table: MaskClasses, masks: readonly Mask[], ignore?: string): MaskClasses {
  const isIndexed = table.maskKind === "grey" && kindOf(masks) === "palette";
  const named: MaskClasses = isIndexed
    ? { ...table, maskKind: "palette", palette: masks[0]?.palette }
    : table;
  if (ignore === undefined) return named;
  const { classes, maskValues, maskKind } = named;
  const place = classes.indexOf(ignore);
  const ignoredValue = place < 0 ? maskValueOf(ignore, maskKind) : maskValues[place];
  const counts = maskValues.map((value) => value !== ignoredValue);
  return {
    ...named,
    classes: classes.filter((_, i) => counts[i]),
    maskValues: maskValues.filter((_, i) => counts[i]),
    ignoredValue,
  };
}

/**
 * A value of masks as text: a number, or a colour such as `#8040ff`.
 * @throws RangeError where it is none of that kind
 */
function maskValueOf(text: string, kind: MaskKind): number {
  const colour = /^#?([0-9a-f]{6})$/i.exec(text)?.[1];
  if (kind === "colour" && colour !== undefined) return Number.parseInt(colour, 16);
  if (kind !== "colour" && /^\d{1,5}$/.test(text)) return Number(text);
  throw new RangeError(
    `${JSON.stringify(text)} is neither the name of a class nor ${kind === "colour" ? "a colour such as #000000" : "a number, and masks have numbers"}`,
  );
}

/** As `#8040ff`. */
const hex = (value: number): string => `#${value.toString(16).padStart(6, "0")}`;

/**
 * A grey may be the number of a class or its colour. Beside colours it is a colour, for a mask of nothing but black has only greys. Beside
 * indices it is one or the other.
 * @throws DataError where some masks have a palette and some are grey
 */
function requireOneMeaning(directory: string, masks: readonly Mask[]): void {
  const [indexed, grey] = ["palette", "grey"].map((kind) =>
    masks.find((each) => each.kind === kind),
  );
  if (indexed && grey)
    throw new DataError(
      directory,
      `has masks with a palette (${indexed.path}) and grey masks (${grey.path}), whose values mean different things: save all in one way, or name the classes with --classes FILE`,
    );
}

function kindOf(masks: readonly Mask[]): MaskKind {
  const kinds = new Set(masks.map(({ kind }) => kind));
  if (kinds.size > 1) return "colour";
  const [kind = "grey"] = kinds;
  if (kind !== "palette") return kind;
  const first = masks[0]?.palette ?? [];
  const agrees = (mask: Mask): boolean =>
    mask.values.every((index) => {
      const [mine, theirs] = [mask.palette?.[index], first[index]];
      return mine !== undefined && theirs !== undefined && rgb(mine) === rgb(theirs);
    });
  return masks.every(agrees) ? "palette" : "colour";
}

/** The pixels of a mask converted to another kind. */
function valuesAs({ kind, values, palette = [], path }: Mask, wanted: MaskKind): Uint32Array {
  if (kind === wanted) return values;
  if (wanted === "colour" && kind === "palette") {
    const colours = palette.map(rgb);
    return values.map((index) => colours[index] as number);
  }
  if (wanted === "colour") return values.map((grey) => rgb([grey, grey, grey]));
  // Indices and greys need no conversion.
  if (kind !== "colour") return values;
  throw new DataError(
    path,
    "has colours, and the classes are named by single values: give red, green and blue",
  );
}

/**
 * The class of each pixel, or {@link ignored}.
 * @throws DataError where a pixel has an unknown class
 */
export function labelsIn(
  mask: Mask,
  { maskKind, maskValues, classes, ignoredValue }: MaskClasses,
): Uint8Array {
  const labelOf = new Map(maskValues.map((value, label) => [value, label]));
  if (ignoredValue !== undefined) labelOf.set(ignoredValue, ignored);
  const values = valuesAs(mask, maskKind);
  return Uint8Array.from(values, (value, i) => {
    const label = labelOf.get(value);
    if (label === undefined)
      throw new DataError(
        mask.path,
        `has ${maskKind === "colour" ? hex(value) : value} at ${placeOf(i, mask)}, which is none of the ${classes.length} classes`,
      );
    return label;
  });
}

/**
 * Writes classes as a mask in the form of the training masks.
 * @throws StorageError
 */
export async function writeMask(
  path: string,
  labels: Uint8Array,
  { height, width }: Size,
  { maskKind = "grey", maskValues, palette = [] }: MaskShown,
): Promise<void> {
  const size = { height, width };
  const shownBy = (label: number): number => maskValues[label] as number;
  if (maskKind === "palette") {
    const indices = labels.map(shownBy);
    return writeWholeFile(path, writePalettePng({ ...size, indices, palette }));
  }
  if (maskKind === "colour") {
    const data = new Uint8Array(3 * labels.length);
    for (const [i, label] of labels.entries()) data.set(colourOf(shownBy(label)), 3 * i);
    return writeWholeFile(path, encode({ ...size, channels: 3, data }));
  }
  const isDeep = maskValues.some((value) => value > 255);
  const data = isDeep ? Uint16Array.from(labels, shownBy) : labels.map(shownBy);
  return writeWholeFile(path, encode({ ...size, channels: 1, depth: isDeep ? 16 : 8, data }));
}
