import type { ImageSet } from "@halfstep/data";
import { encodePng } from "@halfstep/trainer/node";
import type { Sample } from "@halfstep/trainer/report";

/** Test images in the report. */
const count = 16;

/** CSS pixels of an image: four for each of its own. */
const shownWidth = 112;

/**
 * Test images with the prediction of each precision: first misclassified ones, at most half of all.
 * @param predictions of the test images in their order, by precision
 */
export function samplesOf(
  test: ImageSet,
  predictions: ReadonlyMap<string, readonly number[]>,
): readonly Sample[] {
  if (predictions.size === 0) return [];
  const indices = Array.from({ length: test.count }, (_, i) => i);
  const isMissed = (i: number): boolean =>
    [...predictions.values()].some((digits) => digits[i] !== test.labels[i]);
  const missed = indices.filter(isMissed).slice(0, count / 2);
  const others = indices.filter((i) => !isMissed(i)).slice(0, count - missed.length);
  return [...missed, ...others].map((i) => ({
    title: `test image ${i + 1}`,
    pictures: [{ bytes: pngOf(test, i), width: shownWidth }],
    label: String(test.labels[i]),
    prediction: predictionOf(i, predictions),
  }));
}

/** One digit where all agree. */
function predictionOf(i: number, predictions: ReadonlyMap<string, readonly number[]>): string {
  const digits = [...predictions].map(([precision, all]) => [precision, all[i]] as const);
  if (new Set(digits.map(([, digit]) => digit)).size === 1) return String(digits[0]?.[1]);
  return digits.map(([precision, digit]) => `${digit} (${precision})`).join(", ");
}

function pngOf({ images, width, height }: ImageSet, index: number): Uint8Array {
  const length = width * height;
  const pixels = images.subarray(index * length, (index + 1) * length);
  return encodePng({ width, height, channels: 1, pixels });
}
