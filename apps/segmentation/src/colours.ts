import { colourOf, ignored, type MaskClasses } from "./masks.js";
import type { Colour } from "./palette-png.js";
import type { Picture } from "./pictures.js";
import type { Scene } from "./scene.js";
import { labelsOf, type PictureSegmenter } from "./segment.js";

const ink: Colour = [24, 28, 44];
const wrong: Colour = [230, 50, 50];
const right: Colour = [40, 44, 52];
const uncounted: Colour = [128, 128, 128];

/** The colour of each class in masks. Masks of greys have none: the first is dark then. */
export function coloursOf({
  maskKind,
  maskValues,
  palette,
}: Pick<MaskClasses, "maskValues" | "palette"> & {
  readonly maskKind?: MaskClasses["maskKind"] | undefined;
}): readonly Colour[] {
  return maskValues.map((value, i) => {
    if (maskKind === "colour") return colourOf(value);
    const own = maskKind === "palette" ? palette?.[value] : undefined;
    return own ?? (i === 0 ? ink : hue((i - 1) / (maskValues.length - 1) + 0.3));
  });
}

/** A picture with its classes overlaid in their colours, except the first class. */
export function overlay(picture: Picture, labels: Uint8Array, colours: readonly Colour[]): Picture {
  const { height, width } = picture;
  const pixels = new Uint8Array(height * width * 3);
  for (let i = 0; i < height * width; i++)
    for (let c = 0; c < 3; c++) {
      const shown = picture.pixels[
        i * picture.channels + (picture.channels === 1 ? 0 : c)
      ] as number;
      const label = labels[i] as number;
      const colour = colours[label]?.[c] as number;
      pixels[i * 3 + c] = label === 0 ? shown : Math.round(0.55 * shown + 0.45 * colour);
    }
  return { height, width, channels: 3, pixels };
}

/** Enlargement of the shown scenes. */
const zoom = 2;

/** Pixels between the shown scenes. */
const gap = 4;

/** Held-out scenes in columns: the picture, the truth, the prediction, and in red where they differ. Grey pixels do not count. */
export async function samplesPicture(
  segmenter: PictureSegmenter,
  scenes: readonly Scene[],
  colours: readonly Colour[],
): Promise<Picture> {
  const { height, width } = scenes[0] as Scene;
  const cell = { height: height * zoom + gap, width: width * zoom + gap };
  const size = { height: 4 * cell.height + gap, width: scenes.length * cell.width + gap };
  const pixels = new Uint8Array(size.height * size.width * 3).fill(255);
  for (const [column, scene] of scenes.entries()) {
    const predicted = labelsOf(await segmenter.segment(scene), scene);
    const shown: readonly ((i: number) => Colour)[] = [
      (i) => colourAt(scene, i),
      (i) => colours[scene.labels[i] as number] ?? uncounted,
      (i) => colours[predicted[i] as number] as Colour,
      (i) => (predicted[i] === scene.labels[i] || scene.labels[i] === ignored ? right : wrong),
    ];
    for (const [row, colour] of shown.entries())
      for (let y = 0; y < height * zoom; y++)
        for (let x = 0; x < width * zoom; x++) {
          const to = (row * cell.height + gap + y) * size.width + column * cell.width + gap + x;
          pixels.set(colour(Math.floor(y / zoom) * width + Math.floor(x / zoom)), to * 3);
        }
  }
  return { ...size, channels: 3, pixels };
}

const colourAt = ({ pixels, channels }: Picture, i: number): Colour => {
  const at = (c: number): number => pixels[i * channels + Math.min(c, channels - 1)] as number;
  return [at(0), at(1), at(2)];
};

/** A bright colour. @param turn around the circle of hues, from 0 to 1 */
function hue(turn: number): Colour {
  const part = (shift: number): number =>
    Math.round(150 + 105 * Math.cos(2 * Math.PI * (turn - shift / 3)));
  return [part(0), part(1), part(2)];
}
