import { describeImbalance } from "@halfstep/trainer";
import type { MaskClasses } from "./masks.js";
import type { Size } from "./pictures.js";

/** A picture with the class of each pixel. */
export interface Scene {
  readonly name: string;
  /** Pixels. */
  readonly height: number;
  /** Pixels. */
  readonly width: number;
  readonly channels: number;
  /** [height, width, channels], one byte each */
  readonly pixels: Uint8Array;
  /** [height, width], the class of each pixel, or `ignored` of masks.ts */
  readonly labels: Uint8Array;
  /** The file of a picture that is a scene of its own, its size, and the factor by which the scene was scaled. */
  readonly file?: Size & { readonly path: string; readonly scale: number };
}

/** Training scenes and held-out scenes of the same kind. */
export interface SceneSet extends MaskClasses {
  /** For people. */
  readonly name: string;
  /** 1 for grey pictures, 3 for coloured ones. */
  readonly channels: number;
  /** Names. Of two classes the second is the target. */
  readonly classes: readonly string[];
  /** Size of the scenes relative to their files; pictures are scaled in the same way for prediction. */
  readonly scale: number;
  /** Whether a mirrored scene is a valid scene. */
  readonly flips: boolean;
  readonly train: readonly Scene[];
  readonly heldOut: readonly Scene[];
}

/** A part of a scene. */
export function crop(
  scene: Scene,
  {
    x,
    y,
    width,
    height,
  }: Pick<Scene, "width" | "height"> & { readonly x: number; readonly y: number },
): Scene {
  const { channels } = scene;
  const pixels = new Uint8Array(height * width * channels);
  const labels = new Uint8Array(height * width);
  for (let row = 0; row < height; row++) {
    const start = (y + row) * scene.width + x;
    labels.set(scene.labels.subarray(start, start + width), row * width);
    pixels.set(
      scene.pixels.subarray(start * channels, (start + width) * channels),
      row * width * channels,
    );
  }
  return { ...scene, width, height, pixels, labels };
}

/** Classes that are named, before "…". */
const named = 12;

/** How many pixels of scenes have each of so many classes. */
export function pixelsOf(scenes: readonly Scene[], classes: number): Float64Array {
  const counts = new Float64Array(classes);
  for (const { labels } of scenes)
    for (const label of labels) if (label < classes) counts[label] = (counts[label] as number) + 1;
  return counts;
}

/**
 * Describes the training data: the classes with their shares of the pixels, whether they are unbalanced, and the classes in the first
 * scene.
 */
export function describeClasses({ classes, train }: SceneSet): readonly string[] {
  const sharesOf = (scenes: readonly Scene[]): readonly string[] => {
    const counts = pixelsOf(scenes, classes.length);
    const pixels = counts.reduce((sum, count) => sum + count, 0);
    return classes.map((name, label) =>
      counts[label] === 0
        ? ""
        : `${name} (${((100 * (counts[label] as number)) / pixels).toFixed(1)} %)`,
    );
  };
  const listOf = (shares: readonly string[]): string => {
    const present = shares.filter((share) => share !== "");
    const rest = present.length - named;
    return present.slice(0, named).join(", ") + (rest > 0 ? `, … ${rest} more` : "");
  };
  const shares = sharesOf(train);
  const absent = classes.filter((_, label) => shares[label] === "");
  const [first] = train;
  const imbalance = describeImbalance(classes, pixelsOf(train, classes.length));
  return [
    `classes, with their shares of the training pixels: ${listOf(shares)}`,
    ...(absent.length > 0
      ? [
          `no training pixel is of ${absent.slice(0, named).join(", ")}${absent.length > named ? ", …" : ""}`,
        ]
      : []),
    ...(imbalance === undefined ? [] : [imbalance]),
    ...(first ? [`for example, ${first.name} has ${listOf(sharesOf([first]))}`] : []),
  ];
}
