/** Figures of labels besides their accuracy, from 0 to 1. */
export type LabelFigures = {
  /** The mean of the F1 of all labels that were wanted or predicted. */
  readonly macroF1: number;
  /** F1 of whole entities, as conlleval counts them; only where tags mark entities (B-PER, I-PER, O). */
  readonly entityF1?: number;
};

/** Counts wanted and predicted labels, text by text. */
export class LabelMetrics {
  readonly labels: readonly string[];
  /** How often a label was wanted (row) and another predicted (column). */
  readonly confusion: readonly Uint32Array[];
  readonly #marksEntities: boolean;
  readonly #entities = { wanted: 0, predicted: 0, right: 0 };

  constructor(labels: readonly string[]) {
    this.labels = labels;
    this.confusion = labels.map(() => new Uint32Array(labels.length));
    this.#marksEntities =
      labels.includes("O") && labels.every((label) => label === "O" || /^[BIESLU]-./.test(label));
  }

  /** Counts a text. Words that were cut off have the wanted label −1, and are left out. */
  add(wanted: readonly number[], predicted: readonly number[]): void {
    for (const [i, label] of wanted.entries()) {
      const row = this.confusion[label];
      const column = predicted[i];
      if (row && column !== undefined) row[column] = (row[column] ?? 0) + 1;
    }
    if (!this.#marksEntities) return;
    const kept = wanted.flatMap((label, i) =>
      label >= 0 && predicted[i] !== undefined ? [i] : [],
    );
    const entitiesIn = (tags: readonly number[]): readonly string[] =>
      entitiesOf(kept.map((i) => this.labels[tags[i] as number] ?? "O"));
    const [first, second] = [entitiesIn(wanted), new Set(entitiesIn(predicted))];
    this.#entities.wanted += first.length;
    this.#entities.predicted += second.size;
    this.#entities.right += first.filter((entity) => second.has(entity)).length;
  }

  figures(): LabelFigures {
    const columns = this.labels.map((_, column) =>
      this.confusion.reduce((sum, row) => sum + (row[column] as number), 0),
    );
    const scores = this.confusion.flatMap((row, label) => {
      const wanted = row.reduce((sum, count) => sum + count, 0);
      const predicted = columns[label] as number;
      return wanted + predicted === 0 ? [] : [f1(row[label] as number, wanted, predicted)];
    });
    const macroF1 = scores.reduce((sum, score) => sum + score, 0) / scores.length;
    if (!this.#marksEntities) return { macroF1 };
    const { right, wanted, predicted } = this.#entities;
    return { macroF1, entityF1: f1(right, wanted, predicted) };
  }

  /** The confusion matrix in lines: a row for each wanted label, a column for each predicted one. */
  table(): readonly string[] {
    const width = Math.max(...this.labels.map((label) => label.length), 6);
    const cells = (first: string, rest: readonly (string | number)[]): string =>
      [first.padEnd(width), ...rest.map((cell) => String(cell).padStart(width))].join("  ");
    return [
      cells("", this.labels),
      ...this.confusion.map((row, label) => cells(this.labels[label] as string, [...row])),
    ];
  }
}

/** The harmonic mean of precision and recall; 0 where nothing was right. */
const f1 = (right: number, wanted: number, predicted: number): number =>
  wanted + predicted === 0 ? 0 : (2 * right) / (wanted + predicted);

/**
 * The entities of a sentence as "first last type". Tags may be in any scheme that conlleval reads: IOB1, IOB2, IOBES, BILOU. An entity
 * begins at B, S and U, after O, and where the type changes. It ends before the next begins, at O, and after E, S, L and U.
 */
export function entitiesOf(tags: readonly string[]): readonly string[] {
  const entities: string[] = [];
  let open: { readonly first: number; readonly type: string } | undefined;
  const close = (last: number): void => {
    if (open) entities.push(`${open.first} ${last} ${open.type}`);
    open = undefined;
  };
  for (const [i, tag] of tags.entries()) {
    const [mark = "O", type = ""] = tag === "O" ? ["O"] : [tag.slice(0, 1), tag.slice(2)];
    if (mark === "O" || "BSU".includes(mark) || open?.type !== type) close(i - 1);
    if (mark === "O") continue;
    open ??= { first: i, type };
    if ("ESLU".includes(mark)) close(i);
  }
  close(tags.length - 1);
  return entities;
}
