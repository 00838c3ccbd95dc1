import { ConfigFields, requireEnoughWeights, UNet } from "@halfstep/models";
import { applyRecipe } from "@halfstep/nn";
import type { Runtime } from "@halfstep/tensor";
import {
  type Checkpoint,
  CheckpointError,
  loadModel,
  modelState,
  type Stateful,
  savedData,
  savedRecipe,
} from "@halfstep/trainer";
import { savedSetting } from "@halfstep/trainer/cli";
import { checkpointIn } from "@halfstep/trainer/node";
import { type MaskClasses, type MaskKind, maskKinds } from "./masks.js";
import type { Colour } from "./palette-png.js";
import { type Encoding, encodings } from "./tiles.js";

/** The description of a network besides its parameters. */
export interface Segmenter {
  /** 1 for grey pictures, 3 for coloured ones. */
  readonly channels: number;
  readonly classes: readonly string[];
  /** The grey, the index or the colour of each class in mask files. */
  readonly maskValues: readonly number[];
  /** The kind of these values. Default: grey. */
  readonly maskKind?: MaskKind | undefined;
  readonly palette?: MaskClasses["palette"];
  /** The one of pixels that do not count. */
  readonly ignoredValue?: number | undefined;
  /** Factor by which pictures are scaled before segmentation. */
  readonly scale: number;
  /** Channels of the first level. */
  readonly width: number;
  readonly bilinear: boolean;
  /** Height and width of the tiles that it was trained on. */
  readonly tile: number;
  /** Name of the recipe. */
  readonly precision: string;
  /** How it takes bytes of pictures. Default: "logarithmic". */
  readonly encoding?: Encoding | undefined;
}

export interface OpenedSegmenter extends Segmenter {
  /** In evaluation mode. */
  readonly model: UNet;
  /** The checkpoint or the file that it is from. */
  readonly path: string;
  /** Number of optimizer steps of its training; 0 for weights of others. */
  readonly step: number;
  /** The flag --data of its training; undefined for weights of others. */
  readonly trainedOn?: string | undefined;
}

/** The description of a network, as a part of checkpoints. */
export const savedSegmenter = (segmenter: Segmenter): Stateful => savedData(segmenter);

/** A network with its first parameters. */
export const makeUNet = (
  runtime: Runtime,
  { channels, classes, width, bilinear }: Omit<Segmenter, "precision">,
  seed: number,
): UNet => new UNet(runtime, { seed, channels, classes: classes.length, width, bilinear });

/**
 * The best network of a run folder, or that of a checkpoint.
 * @param precision The precision to run in. Default: that of its training.
 * @throws CheckpointError, ConfigError
 */
export async function openSegmenter(
  runtime: Runtime,
  directory: string,
  precision?: string,
): Promise<OpenedSegmenter> {
  return segmenterIn(runtime, await checkpointIn(directory), precision);
}

/** The network of a checkpoint. The contents of files are validated before use. */
export function segmenterIn(
  runtime: Runtime,
  checkpoint: Checkpoint,
  precision?: string,
): OpenedSegmenter {
  const { path, parts, step } = checkpoint;
  if (parts.segmenter === undefined)
    throw new CheckpointError("misfit", path, "was not saved by this program");
  const source = `${path}, segmenter`;
  const saved = segmenterOf(new ConfigFields(parts.segmenter, source));
  const { classes, ...network } = saved;
  const parameters = UNet.parameterCount({ ...network, classes: classes.length });
  requireEnoughWeights(modelState(checkpoint), { name: "a U-Net", parameters, source });
  const name = precision ?? saved.precision;
  const recipe = savedRecipe(name, checkpoint);
  const model = loadModel(() => makeUNet(runtime, saved, 0), checkpoint);
  applyRecipe(model, recipe).eval();
  const data = savedSetting(checkpoint, "data");
  const trainedOn = typeof data === "string" ? data : undefined;
  return { ...saved, precision: name, model, path, step, trainedOn };
}

function segmenterOf(fields: ConfigFields): Segmenter {
  const saved = {
    channels: fields.count("channels"),
    classes: fields.texts("classes"),
    maskValues: fields.list("maskValues", "greys, indices or colours", isMaskValue),
    maskKind: fields.oneOf("maskKind", maskKinds, "grey"),
    ...(fields.has("palette") && { palette: fields.list("palette", "colours", isColour) }),
    ...(fields.has("ignoredValue") && { ignoredValue: fields.index("ignoredValue", 0) }),
    scale: fields.positive("scale", 1),
    width: fields.count("width"),
    bilinear: fields.truth("bilinear"),
    tile: fields.count("tile"),
    precision: fields.text("precision"),
    ...(fields.has("encoding") && { encoding: fields.oneOf("encoding", encodings) }),
  };
  const { channels, classes, maskValues } = saved;
  if (channels !== 1 && channels !== 3) fields.refuse(`has channels ${channels}: there are 1 or 3`);
  if (classes.length < 2 || classes.length !== maskValues.length)
    fields.refuse(`has ${classes.length} classes, and masks of ${maskValues.length}`);
  return saved;
}

const isMaskValue = (value: unknown): value is number =>
  Number.isSafeInteger(value) && (value as number) >= 0 && (value as number) <= 0xffffff;

const isColour = (value: unknown): value is Colour =>
  Array.isArray(value) &&
  value.length === 3 &&
  value.every((each) => isMaskValue(each) && each <= 255);
