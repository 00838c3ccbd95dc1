import { DataError } from "@halfstep/data";
import { describeImbalance } from "@halfstep/trainer";
import { type Images, labelsOf } from "./images.js";

/** The number of classes from which they are checked for a mistake in the files. */
const manyClasses = 50;

/** Classes that are named, before "…". */
const named = 12;

/**
 * Refuses classes that cannot be learned or are probably a mistake.
 * @throws DataError for one class only, or many with hardly an image each
 */
export function requireClasses(
  place: string,
  { classes, labels }: { readonly classes: readonly string[]; readonly labels: ArrayLike<number> },
): void {
  const present = new Set(Array.from(labels)).size;
  if (present < 2)
    throw new DataError(
      place,
      `has images of one class only (${classes[labels[0] as number]}): put each class in a folder of its own`,
    );
  if (present > manyClasses && labels.length < 2 * present)
    throw new DataError(
      place,
      `has ${present} classes, and ${labels.length} images: is each image in a folder of its own? A class is a folder of images`,
    );
}

/** How many images have each of so many classes. */
export function imagesOf(images: Images, classes: number): Uint32Array {
  const counts = new Uint32Array(classes);
  for (let i = 0; i < images.count; i++)
    for (const label of labelsOf(images, i)) counts[label] = (counts[label] as number) + 1;
  return counts;
}

/** Describes the training data: the classes with their numbers of images, whether they are unbalanced, and some of the images. */
export function describeClasses(images: Images, classes: readonly string[]): readonly string[] {
  const counts = imagesOf(images, classes.length);
  const imbalance = images.sets
    ? describeRare(images.count, classes, counts)
    : describeImbalance(classes, counts);
  const list = classes.slice(0, named).map((name, label) => `${name} (${counts[label]})`);
  const rest = classes.length > named ? `, … ${classes.length - named} more` : "";
  const without = classes.filter((_, label) => counts[label] === 0).length;
  const shown = [0, images.count >> 1, images.count - 1].map(
    (i) =>
      `${images.nameOf(i)} is ${
        labelsOf(images, i)
          .map((label) => classes[label])
          .join(", ") || "without a label"
      }`,
  );
  return [
    `classes, with training images: ${list.join(", ")}${rest}`,
    ...(imbalance === undefined ? [] : [imbalance]),
    `for example, ${shown.join("; ")}`,
    ...(without > 0
      ? [
          `${without} of ${classes.length} classes have no training image: a larger --limit has some`,
        ]
      : []),
  ];
}

/** A label that fewer than one image in so many has is called rare. */
const rare = 5;

/** A line about labels that few images have, where images have any number of them. */
function describeRare(
  images: number,
  classes: readonly string[],
  counts: Uint32Array,
): string | undefined {
  const few = [...classes.keys()]
    .filter((label) => (counts[label] as number) * rare < images)
    .sort((a, b) => (counts[a] as number) - (counts[b] as number));
  const [first] = few;
  if (first === undefined) return undefined;
  const share = ((100 * (counts[first] as number)) / images).toFixed(1);
  return `unbalanced: ${few.length} of ${classes.length} labels are on fewer than one image in ${rare}, ${classes[first]} on ${share} %: --class-weights balanced makes them count more`;
}
