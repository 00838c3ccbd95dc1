import { UsageError } from "@halfstep/trainer/cli";
import { readDigits } from "./digits.js";
import { readEarth } from "./earth.js";
import { readFolder } from "./folder.js";
import type { MaskClasses } from "./masks.js";
import type { SplitName } from "./pairs.js";
import type { SceneSet } from "./scene.js";

/** The flags that select the scenes. */
export interface SceneFlags {
  /** "earth", "digits", or a folder of pictures and masks. */
  readonly data: string;
  readonly scale?: number;
  /** Per cent. */
  readonly validation?: number;
  /** A file that names the classes of a folder's masks. */
  readonly classes?: string;
  /** Of a folder's masks: the pixels that do not count. */
  readonly ignoreLabel?: string;
  /** Of a folder that is divided: the part that is held out. */
  readonly split?: SplitName;
  readonly canvases?: number;
  readonly seed: number;
}

/** Whether the flag --data names scenes that come with the app, no folder. */
export const isOfApp = (data: string): boolean => data === "earth" || data === "digits";

/**
 * Reads the scenes that the flags name.
 * @param known The classes of a network that is tested. A table goes before it.
 * @throws DataError; UsageError for flags of other data
 */
export async function readScenes(
  { data, scale, validation, classes, ignoreLabel, split, canvases, seed }: SceneFlags,
  known?: MaskClasses,
): Promise<SceneSet> {
  const isFolder = !isOfApp(data);
  const refuse = (flag: string, given: unknown, belongs: string): void => {
    if (given !== undefined)
      throw new UsageError(`--${flag} is for ${belongs}, and --data is ${data}: leave it out`);
  };
  if (data !== "digits") refuse("canvases", canvases, "--data digits");
  if (!isFolder) {
    refuse("validation", validation, "folders");
    refuse("classes", classes, "folders");
    refuse("ignore-label", ignoreLabel, "folders");
    refuse("split", split, "folders");
  }
  if (data === "digits") {
    refuse("scale", scale, "pictures");
    return readDigits({ count: canvases ?? 2000, seed });
  }
  return data === "earth"
    ? readEarth(scale)
    : readFolder(data, {
        scale: scale ?? 0.5,
        validation: (validation ?? 10) / 100,
        ...{ classes, known, ignoreLabel, split, seed },
      });
}
