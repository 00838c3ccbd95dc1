import { type ClassScore, classScore, macroF1 } from "./confusion-matrix.js";

/** Figures of predictions of several labels an example, from 0 to 1. */
export type LabelSetFigures = {
  /** F1 over all labels of all examples. */
  readonly microF1: number;
  /** The mean of the F1 of each label. */
  readonly macroF1: number;
  /** Share of examples all of whose labels were told, and no other. */
  readonly exactMatch: number;
};

/** Counts how often each label was wanted, predicted and both, where an example may have any number of labels. */
export class LabelSetCounts {
  /** Names of the labels. */
  readonly labels: readonly string[];
  readonly #right: Float64Array;
  readonly #wanted: Float64Array;
  readonly #predicted: Float64Array;
  #examples = 0;
  #exact = 0;

  constructor(labels: readonly string[]) {
    this.labels = labels;
    this.#right = new Float64Array(labels.length);
    this.#wanted = new Float64Array(labels.length);
    this.#predicted = new Float64Array(labels.length);
  }

  /** Counts an example: for each label 1 where it has it, else 0; and the same as predicted. */
  add(wanted: ArrayLike<number>, predicted: ArrayLike<number>): void {
    let isExact = true;
    for (let i = 0; i < this.labels.length; i++) {
      const [has, told] = [wanted[i] === 1, predicted[i] === 1];
      isExact &&= has === told;
      if (has) increment(this.#wanted, i);
      if (told) increment(this.#predicted, i);
      if (has && told) increment(this.#right, i);
    }
    this.#examples++;
    if (isExact) this.#exact++;
  }

  classScores(): readonly ClassScore[] {
    return this.labels.map((label, i) =>
      classScore(label, {
        right: this.#right[i] as number,
        examples: this.#wanted[i] as number,
        predicted: this.#predicted[i] as number,
      }),
    );
  }

  figures(): LabelSetFigures {
    const [right, wanted, predicted] = [this.#right, this.#wanted, this.#predicted].map((counts) =>
      counts.reduce((sum, count) => sum + count, 0),
    ) as [number, number, number];
    return {
      microF1: wanted + predicted === 0 ? 0 : (2 * right) / (wanted + predicted),
      macroF1: macroF1(this.classScores()),
      exactMatch: this.#exact / this.#examples,
    };
  }
}

const increment = (counts: Float64Array, i: number): void => {
  counts[i] = (counts[i] as number) + 1;
};
