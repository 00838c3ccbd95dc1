import { batchesOf, type Images } from "../src/images.js";

/** The share of test images that are nearest to the mean of their class's training images, pixel by pixel. */
export async function nearestMeanAccuracy(
  train: Images,
  test: Images,
  classes: number,
): Promise<number> {
  const length = train.size ** 2 * train.channels;
  const means = Array.from({ length: classes }, () => new Float64Array(length));
  const counts = new Float64Array(classes);
  for await (const [image, label] of singly(train)) {
    counts[label] = (counts[label] as number) + 1;
    const mean = means[label] as Float64Array;
    for (const [i, value] of image.entries()) mean[i] = (mean[i] as number) + value;
  }
  for (const [label, mean] of means.entries())
    for (const [i, sum] of mean.entries()) mean[i] = sum / (counts[label] as number);
  let correct = 0;
  for await (const [image, label] of singly(test)) {
    const distances = means.map((mean) =>
      mean.reduce((sum, value, i) => sum + (value - (image[i] as number)) ** 2, 0),
    );
    if (distances.indexOf(Math.min(...distances)) === label) correct++;
  }
  return correct / test.count;
}

async function* singly(images: Images): AsyncGenerator<readonly [Float32Array, number]> {
  const places = Array.from({ length: images.count }, (_, i) => Uint32Array.of(i));
  for await (const { images: image, labels } of batchesOf(images, places, 1))
    yield [image, labels[0] as number];
}
