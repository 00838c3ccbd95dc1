import { ConfusionMatrix, LabelSetCounts, macroF1 } from "@halfstep/trainer";

/** Figures of a test besides its accuracy, and what they are computed from. */
export interface TestMetrics {
  readonly counts: ConfusionMatrix | LabelSetCounts;
  /** Counts a text by its wanted and predicted labels, as a learner has them. */
  add(wanted: readonly number[], predicted: readonly number[]): void;
  /** From 0 to 1. */
  figures(): Readonly<Record<string, number>>;
}

/** Figures of labels besides their accuracy, from 0 to 1. */
export type LabelFigures = {
  /** The mean of the F1 of all labels that were wanted or predicted. */
  readonly macroF1: number;
  /** F1 of whole entities, as conlleval counts them; only where tags mark entities (B-PER, I-PER, O). */
  readonly entityF1?: number;
};

/** Counts wanted and predicted classes or tags, text by text. */
export class LabelMetrics implements TestMetrics {
  readonly counts: ConfusionMatrix;
  readonly #marksEntities: boolean;
  readonly #entities = { wanted: 0, predicted: 0, right: 0 };

  constructor(labels: readonly string[]) {
    this.counts = new ConfusionMatrix(labels);
    this.#marksEntities =
      labels.includes("O") && labels.every((label) => label === "O" || /^[BIESLU]-./.test(label));
  }

  add(wanted: readonly number[], predicted: readonly number[]): void {
    this.counts.add(wanted, predicted);
    if (!this.#marksEntities) return;
    const { labels } = this.counts;
    const entitiesIn = (tags: readonly number[]): readonly string[] =>
      entitiesOf(tags.map((tag) => labels[tag] as string));
    const [first, second] = [entitiesIn(wanted), new Set(entitiesIn(predicted))];
    this.#entities.wanted += first.length;
    this.#entities.predicted += second.size;
    this.#entities.right += first.filter((entity) => second.has(entity)).length;
  }

  figures(): LabelFigures {
    const figures = { macroF1: macroF1(this.counts.classScores()) };
    if (!this.#marksEntities) return figures;
    const { right, wanted, predicted } = this.#entities;
    return { ...figures, entityF1: f1(right, wanted, predicted) };
  }
}

/** Counts the labels of texts that may have several. */
export class LabelSetMetrics implements TestMetrics {
  readonly counts: LabelSetCounts;

  constructor(labels: readonly string[]) {
    this.counts = new LabelSetCounts(labels);
  }

  add(wanted: readonly number[], predicted: readonly number[]): void {
    this.counts.add(wanted, predicted);
  }

  figures(): Readonly<Record<string, number>> {
    return this.counts.figures();
  }
}

/** The counts in lines: a confusion matrix with a row for each wanted label, or the figures of each label. */
export function tableOf(counts: TestMetrics["counts"]): readonly string[] {
  if (counts instanceof ConfusionMatrix) {
    const { labels } = counts;
    const rows = counts.rows().map((row, i) => [labels[i] as string, ...row.map(String)]);
    return aligned([["", ...labels], ...rows]);
  }
  const share = (value: number): string => (Number.isNaN(value) ? "–" : value.toFixed(4));
  return aligned([
    ["", "texts", "precision", "recall", "F1"],
    ...counts
      .classScores()
      .map(({ label, examples, precision, recall, f1 }) => [
        ...[label, String(examples)],
        ...[precision, recall, f1].map(share),
      ]),
  ]);
}

function aligned(rows: readonly (readonly string[])[]): readonly string[] {
  const width = Math.max(...rows.flat().map((cell) => cell.length), 6);
  return rows.map(([first = "", ...rest]) =>
    [first.padEnd(width), ...rest.map((cell) => cell.padStart(width))].join("  "),
  );
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
