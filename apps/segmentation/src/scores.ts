/** The confusion matrix of pixels: [class, predicted class]. */
export class Confusion {
  readonly classes: readonly string[];
  readonly #counts: Float64Array;

  constructor(classes: readonly string[]) {
    this.classes = classes;
    this.#counts = new Float64Array(classes.length ** 2);
  }

  /** Counts pixels. Pixels with an invalid label are ignored. */
  add(labels: ArrayLike<number>, predictions: ArrayLike<number>): void {
    const { length } = this.classes;
    for (let i = 0; i < labels.length; i++) {
      const label = labels[i] as number;
      if (label >= length) continue;
      const at = label * length + (predictions[i] as number);
      this.#counts[at] = (this.#counts[at] as number) + 1;
    }
  }

  /** Number of pixels of a class that were predicted as another. */
  count(label: number, prediction: number): number {
    return this.#counts[label * this.classes.length + prediction] as number;
  }

  scores(): Scores {
    const indices = this.classes.map((_, i) => i);
    const total = (of: (i: number) => number): number => indices.reduce((sum, i) => sum + of(i), 0);
    const each = indices.map((i) => {
      const hit = this.count(i, i);
      const labelled = total((j) => this.count(i, j));
      const predicted = total((j) => this.count(j, i));
      return { hit, labelled, predicted, union: labelled + predicted - hit };
    });
    const ious = each.map(({ hit, union }) => hit / union);
    const dices = each.map(({ hit, labelled, predicted }) => (2 * hit) / (labelled + predicted));
    return {
      accuracy: total((i) => this.count(i, i)) / total((i) => each[i]?.labelled ?? 0),
      dice: meanOf(dices),
      meanIou: meanOf(ious),
      ious,
    };
  }
}

/** From 0 to 1. Means are over classes that occur in labels or predictions. */
export interface Scores {
  /** Share of correctly classified pixels. */
  readonly accuracy: number;
  /** Twice the intersection over the sum of the areas (Dice 1945). */
  readonly dice: number;
  readonly meanIou: number;
  /** Intersection over union (Jaccard 1912) of each class; NaN where it occurs in neither. */
  readonly ious: readonly number[];
}

/**
 * The headline metric of a set: for two classes the IoU of the second, for more the mean IoU.
 * @example headline(["water", "land"], scores) // { name: "landIou", value: 0.97 }
 */
export function headline(
  classes: readonly string[],
  { ious, meanIou }: Scores,
): { readonly name: string; readonly value: number } {
  if (classes.length !== 2) return { name: "meanIou", value: meanIou };
  const wanted = classes[1] as string;
  return { name: `${wanted.replaceAll(" ", "")}Iou`, value: ious[1] as number };
}

function meanOf(values: readonly number[]): number {
  const known = values.filter((value) => !Number.isNaN(value));
  return known.reduce((sum, value) => sum + value, 0) / known.length;
}
