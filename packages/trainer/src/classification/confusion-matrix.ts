/** How well a model tells one class from the others. Shares are from 0 to 1, and NaN where nothing was counted. */
export interface ClassScore {
  readonly label: string;
  /** Number of examples of the class. */
  readonly examples: number;
  /** Number of examples that the model took for it. */
  readonly predicted: number;
  /** Share of the predicted ones that are of the class. */
  readonly precision: number;
  /** Share of its examples that were found. */
  readonly recall: number;
  /** The harmonic mean of precision and recall. */
  readonly f1: number;
  /** Intersection over union of examples and predictions. */
  readonly iou: number;
}

/** The figures of a class from what was counted. */
export const classScore = (
  label: string,
  { right, examples, predicted }: { right: number; examples: number; predicted: number },
): ClassScore => ({
  ...{ label, examples, predicted },
  precision: right / predicted,
  recall: right / examples,
  f1: (2 * right) / (examples + predicted),
  iou: right / (examples + predicted - right),
});

/** The mean F1 of the classes that have examples or predictions: each counts alike, however rare it is. */
export function macroF1(scores: readonly ClassScore[]): number {
  const known = scores.filter(({ f1 }) => !Number.isNaN(f1));
  return known.reduce((sum, { f1 }) => sum + f1, 0) / known.length;
}

/** Counts how often examples of a class were taken for each class. */
export class ConfusionMatrix {
  /** Names of the classes. */
  readonly labels: readonly string[];
  /** [class, predicted class], row by row; exact up to 2^53. */
  readonly #counts: Float64Array;

  constructor(labels: readonly string[]) {
    this.labels = labels;
    this.#counts = new Float64Array(labels.length ** 2);
  }

  /** Counts examples by their classes and the predicted ones. Those whose class or prediction is none of the labels are left out. */
  add(wanted: ArrayLike<number>, predicted: ArrayLike<number>): void {
    const { length } = this.labels;
    for (let i = 0; i < wanted.length; i++) {
      const [row, column] = [wanted[i] as number, predicted[i] as number];
      if (!(row >= 0 && row < length && column >= 0 && column < length)) continue;
      const at = row * length + column;
      this.#counts[at] = (this.#counts[at] as number) + 1;
    }
  }

  /** Number of examples of a class that were taken for another, or for itself. */
  count(wanted: number, predicted: number): number {
    return this.#counts[wanted * this.labels.length + predicted] as number;
  }

  /** All counts: a row for each class, a column for each predicted one. */
  rows(): readonly (readonly number[])[] {
    return this.labels.map((_, row) => this.labels.map((_, column) => this.count(row, column)));
  }

  /** The share of examples that were predicted right. */
  accuracy(): number {
    const right = this.labels.reduce((sum, _, i) => sum + this.count(i, i), 0);
    return right / this.#counts.reduce((sum, count) => sum + count, 0);
  }

  classScores(): readonly ClassScore[] {
    const indices = this.labels.map((_, i) => i);
    const total = (of: (i: number) => number): number => indices.reduce((sum, i) => sum + of(i), 0);
    return this.labels.map((label, i) =>
      classScore(label, {
        right: this.count(i, i),
        examples: total((j) => this.count(i, j)),
        predicted: total((j) => this.count(j, i)),
      }),
    );
  }
}
