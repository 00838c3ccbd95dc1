import { mkdirSync } from "node:fs";
import { join } from "node:path";
import sharp from "sharp";

export const colours: readonly string[] = ["blue", "green", "red"];

/** The colours that picture number `image` has. */
export const coloursOf = (image: number): readonly string[] =>
  colours.filter((_, i) => (image >> i) % 2 === 1);

/** Makes a folder of pictures `p0.png`, `p1.png`, … of 16 × 16 pixels whose channels are bright where they have the colour. */
export async function makePictures(folder: string, count: number): Promise<void> {
  mkdirSync(folder);
  for (let image = 0; image < count; image++) {
    const bright = coloursOf(image);
    const pixels = Buffer.alloc(16 * 16 * 3);
    for (let i = 0; i < pixels.length; i++) {
      const colour = ["red", "green", "blue"][i % 3] as string;
      pixels[i] = (bright.includes(colour) ? 180 : 20) + ((7 * i + 13 * image) % 50);
    }
    const raw = { width: 16, height: 16, channels: 3 } as const;
    await sharp(pixels, { raw })
      .png()
      .toFile(join(folder, `p${image}.png`));
  }
}
