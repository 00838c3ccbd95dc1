import { imageSet } from "@halfstep/data";
import { digitCounts, digitsFile } from "./digits-file.js";
import type { Digits } from "./tasks/digits.js";

/** Loads the digits that lie beside the pages. */
export async function fetchDigits(base: string): Promise<Digits> {
  const response = await fetch(new URL(digitsFile, base)).catch(() => {
    throw new Error(`${digitsFile} could not be loaded: check the connection`);
  });
  if (!response.ok || response.body === null) {
    throw new Error(`${digitsFile} could not be loaded: ${response.status} ${response.statusText}`);
  }
  const stream = response.body.pipeThrough(new DecompressionStream("gzip"));
  const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
  const { train, test } = digitCounts;
  const pixels = 28 * 28;
  const labels = pixels * (train + test);
  const setOf = (name: string, first: number, count: number) =>
    imageSet(
      {
        name: `the images of ${name}`,
        idx: {
          dtype: "uint8",
          shape: [count, 28, 28],
          data: bytes.subarray(first * pixels, (first + count) * pixels),
        },
      },
      {
        name: `the labels of ${name}`,
        idx: {
          dtype: "uint8",
          shape: [count],
          data: bytes.subarray(labels + first, labels + first + count),
        },
      },
      10,
    );
  return { train: setOf("training", 0, train), test: setOf("testing", train, test) };
}
