import { UNet } from "@halfstep/models";
import { applyRecipe } from "@halfstep/nn";
import type { Runtime } from "@halfstep/tensor";
import { CheckpointError, loadModel, recipeFor, type Stateful, savedData } from "@halfstep/trainer";
import { checkpointIn } from "@halfstep/trainer/node";
import type { MaskClasses, MaskKind } from "./masks.js";

/** What has to be known of a network besides its parameters. */
export interface Segmenter {
  /** 1 for grey pictures, 3 for coloured ones. */
  readonly channels: number;
  readonly classes: readonly string[];
  /** The grey, the index or the colour of each class in mask files. */
  readonly maskValues: readonly number[];
  /** Which of these it is. Default: grey. */
  readonly maskKind?: MaskKind | undefined;
  readonly palette?: MaskClasses["palette"];
  /** By which pictures are scaled before they are segmented. */
  readonly scale: number;
  /** Channels of the first level. */
  readonly width: number;
  readonly bilinear: boolean;
  /** Height and width of the tiles that it was trained on. */
  readonly tile: number;
  /** Name of the recipe. */
  readonly precision: string;
}

export interface OpenedSegmenter extends Segmenter {
  /** In evaluation mode. */
  readonly model: UNet;
  /** The checkpoint that it is from. */
  readonly path: string;
  /** Optimizer steps that it was trained. */
  readonly step: number;
}

/** What a network is, as a part of checkpoints. */
export const savedSegmenter = (segmenter: Segmenter): Stateful => savedData(segmenter);

/** A network with its first parameters. */
export const makeUNet = (
  runtime: Runtime,
  { channels, classes, width, bilinear }: Omit<Segmenter, "precision">,
  seed: number,
): UNet => new UNet(runtime, { seed, channels, classes: classes.length, width, bilinear });

/**
 * The best network of a run folder, or that of a checkpoint.
 * @param precision of the network from now on. Default: the one that it was trained in.
 * @throws CheckpointError
 */
export async function openSegmenter(
  runtime: Runtime,
  directory: string,
  precision?: string,
): Promise<OpenedSegmenter> {
  const checkpoint = await checkpointIn(directory);
  const { path, parts, step } = checkpoint;
  const saved = parts.segmenter as Segmenter | undefined;
  if (!saved?.classes) throw new CheckpointError("misfit", path, "was not saved by this program");
  const model = loadModel(makeUNet(runtime, saved, 0), checkpoint);
  const name = precision ?? saved.precision;
  applyRecipe(model, recipeFor(name)).eval();
  return { ...saved, precision: name, model, path, step };
}
