import { existsSync } from "node:fs";
import { join } from "node:path";
import { DataError } from "@halfstep/data";
import { UNet } from "@halfstep/models";
import { applyRecipe, type StateDict } from "@halfstep/nn";
import type { Runtime } from "@halfstep/tensor";
import { type Checkpoint, CheckpointError, recipeFor, type Stateful } from "@halfstep/trainer";
import { CheckpointFolder, readCheckpoint } from "@halfstep/trainer/node";

/** What has to be known of a network besides its parameters. */
export interface Segmenter {
  /** 1 for grey pictures, 3 for coloured ones. */
  readonly channels: number;
  readonly classes: readonly string[];
  /** The grey of each class in mask files. */
  readonly maskValues: readonly number[];
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
export const savedSegmenter = (segmenter: Segmenter): Stateful => ({
  stateDict: (): Segmenter => segmenter,
  loadStateDict: () => {},
});

/** A network with its first parameters. */
export const makeUNet = (
  runtime: Runtime,
  { channels, classes, width, bilinear }: Omit<Segmenter, "precision">,
  seed: number,
): UNet => new UNet(runtime, { seed, channels, classes: classes.length, width, bilinear });

/**
 * The best network of a run folder, or that of a checkpoint.
 * @param precision of the network from now on. Default: the one that it was trained in.
 * @throws CheckpointError, DataError
 */
export async function openSegmenter(
  runtime: Runtime,
  directory: string,
  precision?: string,
): Promise<OpenedSegmenter> {
  const { path, parts, step } = await checkpointIn(directory);
  const saved = parts.segmenter as Segmenter | undefined;
  if (!saved?.classes) throw new CheckpointError("misfit", path, "was not saved by this program");
  const model = makeUNet(runtime, saved, 0);
  try {
    model.loadStateDict(parts.model as StateDict);
  } catch (error) {
    throw new CheckpointError("misfit", path, (error as Error).message, error as Error);
  }
  const name = precision ?? saved.precision;
  applyRecipe(model, recipeFor(name)).eval();
  return { ...saved, precision: name, model, path, step };
}

async function checkpointIn(directory: string): Promise<Checkpoint> {
  const inside = join(directory, "checkpoints");
  if (!existsSync(inside)) {
    if (!existsSync(directory))
      throw new DataError(
        directory,
        "is not there: train a network first, or name its --out folder",
      );
    return readCheckpoint(directory);
  }
  const folder = new CheckpointFolder(inside);
  const checkpoint = (await folder.best()) ?? (await folder.newest()).checkpoint;
  if (!checkpoint) throw new DataError(inside, "has no checkpoint: train a network first");
  return checkpoint;
}
