import { UsageError } from "@halfstep/trainer/cli";
import { readDigits } from "./digits.js";
import { readEarth } from "./earth.js";
import { readFolder } from "./folder.js";
import type { SceneSet } from "./scene.js";

/** The flags that select the scenes. */
export interface SceneFlags {
  /** "earth", "digits", or a folder with imgs/ and masks/. */
  readonly data: string;
  readonly scale?: number;
  /** Per cent. */
  readonly validation?: number;
  /** A file that names the classes of a folder's masks. */
  readonly classes?: string;
  readonly canvases?: number;
  readonly seed: number;
}

/**
 * Reads the scenes that the flags name.
 * @throws DataError; UsageError for flags of other data
 */
export async function readScenes({
  data,
  scale,
  validation,
  classes,
  canvases,
  seed,
}: SceneFlags): Promise<SceneSet> {
  const isFolder = data !== "earth" && data !== "digits";
  const refuse = (flag: string, given: unknown, belongs: string): void => {
    if (given !== undefined)
      throw new UsageError(`--${flag} is for ${belongs}, and --data is ${data}: leave it out`);
  };
  if (data !== "digits") refuse("canvases", canvases, "--data digits");
  if (!isFolder) {
    refuse("validation", validation, "folders");
    refuse("classes", classes, "folders");
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
        classes,
        seed,
      });
}
