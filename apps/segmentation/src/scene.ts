/** A picture, and what each of its pixels shows. */
export interface Scene {
  readonly name: string;
  /** Pixels. */
  readonly height: number;
  /** Pixels. */
  readonly width: number;
  readonly channels: number;
  /** [height, width, channels], one byte each */
  readonly pixels: Uint8Array;
  /** [height, width], the class of each pixel */
  readonly labels: Uint8Array;
}

/** Scenes to learn from and scenes that are held out, of the same kind. */
export interface SceneSet {
  /** For people. */
  readonly name: string;
  /** 1 for grey pictures, 3 for coloured ones. */
  readonly channels: number;
  /** Names of the classes. Of two, the second is what is looked for. */
  readonly classes: readonly string[];
  /** The grey of each class in mask files. */
  readonly maskValues: readonly number[];
  /** Size of the scenes over that of the files they are from: what is predicted from is scaled alike. */
  readonly scale: number;
  /** Whether a mirrored scene is one of the same kind. */
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
