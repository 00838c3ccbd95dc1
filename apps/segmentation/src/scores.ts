/** How many pixels of one class were taken for another: [class, taken for]. */
export class Confusion {
  readonly classes: readonly string[];
  readonly #counts: Float64Array;

  constructor(classes: readonly string[]) {
    this.classes = classes;
    this.#counts = new Float64Array(classes.length ** 2);
  }

  /** Counts pixels. Those whose label is no class do not count. */
  add(labels: ArrayLike<number>, predictions: ArrayLike<number>): void {
    const { length } = this.classes;
    for (let i = 0; i < labels.length; i++) {
      const label = labels[i] as number;
      if (label >= length) continue;
      const at = label * length + (predictions[i] as number);
      this.#counts[at] = (this.#counts[at] as number) + 1;
    }
  }

  /** Pixels of a class that were taken for another. */
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

/** From 0 to 1. Means are over classes, those left out that neither labels nor predictions have. */
export interface Scores {
  /** Share of pixels whose class was found. */
  readonly accuracy: number;
  /** Twice the intersection over the sum of the areas (Dice 1945). */
  readonly dice: number;
  readonly meanIou: number;
  /** Intersection over union (Jaccard 1912) of each class; NaN where it was neither there nor found. */
  readonly ious: readonly number[];
}

/**
 * What the segmentation of a set is judged by: of two classes the IoU of the second, of more the mean.
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
