import { stratifiedSample } from "@halfstep/data";
import { encodePng } from "@halfstep/trainer/node";
import type { Sample } from "@halfstep/trainer/report";
import type { View } from "./data.js";
import { type Mistake, mostMistakes } from "./evaluate.js";
import { type Images, labelsOf } from "./images.js";

/** Images that are shown besides mistakes. */
const shown = 12;

/** CSS pixels that an image is wide. */
const shownWidth = 112;

/** Test images as the network saw them, with what it took them for: mistakes first, then some of every class. */
export async function samplesOf(
  test: Images,
  view: View,
  mistakes: readonly Mistake[],
): Promise<readonly Sample[]> {
  const wrong = new Map(mistakes.map(({ image, predictions }) => [image, predictions]));
  const labels = Uint32Array.from({ length: test.count }, (_, i) => test.labels[i] as number);
  // Only the first mistakes are kept: of images behind the last of them nothing is known.
  const known = mistakes.length < mostMistakes ? test.count : Math.max(...wrong.keys());
  const right = [...stratifiedSample(labels.subarray(0, known), shown, 0)].filter(
    (place) => !wrong.has(place),
  );
  const named = (places: readonly number[]): string =>
    places.map((place) => view.classes[place]).join(", ") || "no label";
  return Promise.all(
    [...wrong.keys(), ...right].map(async (image): Promise<Sample> => {
      const given = labelsOf(test, image);
      return {
        pictures: [{ bytes: await pngOf(test, view, image), width: shownWidth }],
        label: named(given),
        prediction: named(wrong.get(image) ?? given),
      };
    }),
  );
}

/** An image from the numbers that the network takes. */
async function pngOf(images: Images, { mean, std }: View, image: number): Promise<Uint8Array> {
  const { size, channels } = images;
  const values = new Float32Array(size ** 2 * channels);
  await images.load(image, values);
  const pixels = Uint8Array.from(values, (value, i) =>
    Math.round(255 * (value * (std[i % channels] as number) + (mean[i % channels] as number))),
  );
  return encodePng({ width: size, height: size, channels: channels as 1 | 3, pixels });
}
