import { type ClassScore, ConfusionMatrix } from "../classification/confusion-matrix.js";
import type { LabelSetCounts } from "../classification/label-sets.js";
import { escapeHtml, tableHtml } from "./html.js";
import type { ReportSection } from "./render-report.js";

/** Options of sections about classes. */
export interface ClassSectionOptions {
  /** Whether the table of classes has a column of intersections over unions. Default false. */
  readonly iou?: boolean | undefined;
}

/** The most classes whose confusion matrix is shown whole. */
const mostColumns = 32;

/** The confusions that are listed where the matrix would be too large. */
const mostListed = 40;

/**
 * Sections of a report about the classes of a test: precision, recall and F1 of each, and what is taken for what. Where an example may
 * have several labels, there is the first of the two alone.
 *
 * @example
 * run.finish(summary, { sections: classSections(confusion) });
 */
export function classSections(
  counts: ConfusionMatrix | LabelSetCounts,
  { iou = false }: ClassSectionOptions = {},
): readonly ReportSection[] {
  const classes = { title: "Classes", html: scoresHtml(counts.classScores(), iou) };
  if (!(counts instanceof ConfusionMatrix)) return [classes];
  return [classes, { title: "Confusions", html: confusionHtml(counts) }];
}

const scoresHtml = (scores: readonly ClassScore[], hasIou: boolean): string =>
  tableHtml([
    ["class", "examples", "predicted", "precision", "recall", "F1", ...(hasIou ? ["IoU"] : [])],
    ...scores.map(({ label, examples, predicted, precision, recall, f1, iou }) => [
      label,
      ...[examples, predicted].map(String),
      ...[precision, recall, f1, ...(hasIou ? [iou] : [])].map(percent),
    ]),
  ]);

const percent = (share: number): string =>
  Number.isNaN(share) ? "–" : `${(100 * share).toFixed(2)} %`;

function confusionHtml(matrix: ConfusionMatrix): string {
  const { labels } = matrix;
  if (labels.length > mostColumns) return confusionList(matrix);
  const head = labels.map((label) => `<th>${escapeHtml(label)}</th>`).join("");
  const rows = matrix.rows().map((row, i) => {
    const total = row.reduce((sum, count) => sum + count, 0);
    const cells = row.map((count, j) => cell(count, count / total, i === j)).join("");
    return `<tr><th class="text">${escapeHtml(labels[i] as string)}</th>${cells}</tr>`;
  });
  return `<p>A row for each class, a column for what it was taken for.</p>\n<div class="wide"><table>\n<thead><tr><th></th>${head}</tr></thead>\n<tbody>\n${rows.join("\n")}\n</tbody>\n</table></div>`;
}

/** The share of a class colours the cell: blue on the diagonal, red beside it. */
function cell(count: number, share: number, isRight: boolean): string {
  if (count === 0) return "<td></td>";
  const colour = isRight ? "31, 119, 180" : "214, 39, 40";
  return `<td style="background: rgba(${colour}, ${(0.6 * share).toFixed(2)})">${count}</td>`;
}

/** The most frequent confusions of many classes. */
function confusionList(matrix: ConfusionMatrix): string {
  const { labels } = matrix;
  const pairs = matrix
    .rows()
    .flatMap((row, i) =>
      row.flatMap((count, j) => (i === j || count === 0 ? [] : [{ i, j, count }])),
    )
    .sort((a, b) => b.count - a.count);
  if (pairs.length === 0) return "<p>Nothing was taken for something else.</p>";
  return tableHtml(
    [
      ["class", "taken for", "times"],
      ...pairs
        .slice(0, mostListed)
        .map(({ i, j, count }) => [labels[i] as string, labels[j] as string, String(count)]),
    ],
    { textColumns: 2 },
  );
}
