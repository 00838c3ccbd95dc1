import { DataError } from "@halfstep/data";
import { fileBytes } from "@halfstep/data/node";

/** Pixels in a row and in a column that the network takes. */
const side = 28;

/** The most pixels of a picture: a file of a few bytes may declare billions. */
const mostPixels = 2 ** 27;

/**
 * Reads a picture of one digit as MNIST has them: 28×28 greys, light ink on dark paper. Dark ink on light paper is inverted.
 * @throws DataError where it cannot be read
 */
export async function readDigit(path: string): Promise<Uint8Array> {
  const bytes = await fileBytes(path);
  // Training starts without it.
  const { default: sharp } = await import("sharp");
  try {
    const image = sharp(bytes, { limitInputPixels: false });
    const { width, height } = await image.metadata();
    if (width * height > mostPixels)
      throw new Error(`it has ${width}×${height} pixels, and at most ${mostPixels} are read`);
    const greys = await image
      // A photo is shown as its camera was held.
      .rotate()
      .flatten({ background: "white" })
      .toColourspace("b-w")
      .resize(side, side, { fit: "fill" })
      .raw()
      .toBuffer();
    const pixels = new Uint8Array(greys);
    const mean = pixels.reduce((sum, grey) => sum + grey, 0) / pixels.length;
    return mean > 127 ? pixels.map((grey) => 255 - grey) : pixels;
  } catch (error) {
    const [line] = (error as Error).message.split("\n", 1);
    throw new DataError(
      path,
      `cannot be read as an image (${line?.replace(/:$/, "")}): replace it by a PNG or JPEG file`,
    );
  }
}
