import { UNet } from "@halfstep/models";
import { cpuRuntime } from "@halfstep/tensor";
import { expect, it } from "vitest";
import type { Picture } from "../src/pictures.js";
import { labelsOf, PictureSegmenter } from "../src/segment.js";

const runtime = cpuRuntime();
const model = new UNet(runtime, { seed: 1, width: 2, channels: 1, classes: 3, bilinear: true });
const segmenter = { model, precision: "float32", channels: 1, classes: ["a", "b", "c"] };

const noise = (height: number, width: number): Picture => ({
  ...{ height, width, channels: 1 },
  pixels: Uint8Array.from({ length: height * width }, (_, i) => (i * 2654435761) >>> 24),
});

it("gives probabilities of every pixel of a picture, whatever its size", async () => {
  for (const [height, width] of [
    [5, 9],
    [17, 33],
  ] as const) {
    const { probabilities, ...size } = await new PictureSegmenter({ runtime, segmenter }).segment(
      noise(height, width),
    );
    expect(size).toEqual({ height, width, classes: 3 });
    const sums = Array.from({ length: height * width }, (_, i) =>
      probabilities.subarray(3 * i, 3 * i + 3).reduce((sum, p) => sum + p, 0),
    );
    expect(Math.max(...sums.map((sum) => Math.abs(sum - 1)))).toBeLessThan(1e-5);
  }
});

it("sees the pixels of a window where they are in the picture", async () => {
  const windows = new PictureSegmenter({ runtime, segmenter });
  const wide = noise(16, 208);
  // The second window of the wide picture begins at column 192; its margin has what is before.
  const part = { ...noise(16, 208), width: 16 + 32 };
  const pixels = new Uint8Array(16 * part.width);
  for (let y = 0; y < 16; y++)
    pixels.set(wide.pixels.subarray(y * 208 + 160, (y + 1) * 208), y * part.width);
  const whole = await windows.segment(wide);
  const end = await windows.segment({ ...part, pixels });
  const at = (of: typeof whole, y: number, x: number) =>
    Array.from(of.probabilities.subarray((y * of.width + x) * 3, (y * of.width + x) * 3 + 3));
  const differenceTo = (column: number): number =>
    Math.max(
      ...Array.from({ length: 16 }, (_, y) => {
        const [a, b] = [at(whole, y, 207), at(end, y, column)];
        return Math.max(...a.map((value, i) => Math.abs(value - (b[i] as number))));
      }),
    );
  expect(differenceTo(47)).toBeLessThan(1e-4);
  expect(differenceTo(46)).toBeGreaterThan(1e-3);
});

it("interpolates probabilities, and goes by the threshold", () => {
  const probabilities = Float32Array.of(1, 0, 0, 1);
  const segmented = { height: 1, width: 2, classes: 2, probabilities };
  const wide = { height: 1, width: 8 };
  // The second class has 0, 0, 1/8, 3/8, 5/8, 7/8, 1, 1.
  expect([...labelsOf(segmented, wide)]).toEqual([0, 0, 0, 0, 1, 1, 1, 1]);
  expect([...labelsOf(segmented, wide, 0.3)]).toEqual([0, 0, 0, 1, 1, 1, 1, 1]);
  expect([...labelsOf(segmented, wide, 0.9)]).toEqual([0, 0, 0, 0, 0, 0, 1, 1]);
  const three = Float32Array.of(0.2, 0.5, 0.3, 0.6, 0.3, 0.1);
  expect([
    ...labelsOf({ ...segmented, classes: 3, probabilities: three }, { height: 2, width: 2 }),
  ]).toEqual([1, 0, 1, 0]);
});
