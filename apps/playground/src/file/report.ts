import type { TensorExam } from "./examine.js";
import { formatNames } from "./exams.js";
import type { Finding } from "./protocol.js";
import { nonFiniteOf } from "./verdict.js";

/** What the page knows of a file. */
export interface Report {
  readonly exams: readonly TensorExam[];
  /** The file's name and the number of its tensors, when its header was read. */
  readonly opened?: { readonly name: string; readonly count: number };
  readonly isDone: boolean;
  /** Files that came with it and are left alone. */
  readonly others: number;
  readonly failure?: string;
}

/** Of a file of which nothing is known yet. */
export const begun: Report = { exams: [], isDone: false, others: 0 };

/** The report of a file that cannot be read on. */
export const failed = (report: Report, failure: string): Report => ({ ...report, failure });

/** The report after news of the worker. */
export function afterFinding(report: Report, finding: Finding): Report {
  switch (finding.type) {
    case "opened":
      return { ...report, opened: { name: finding.name, count: finding.count } };
    case "tensors":
      return { ...report, exams: [...report.exams, ...finding.exams] };
    case "done":
      return { ...report, isDone: true };
    case "failed":
      return failed(report, finding.message);
  }
}

const counted = (count: number): string =>
  `${count.toLocaleString("en-US")} ${count === 1 ? "tensor" : "tensors"}`;

/** The report in a line. */
export function statusOf(report: Report | undefined): string {
  if (report === undefined || report.failure !== undefined) return "";
  const { exams, opened, isDone, others } = report;
  if (opened === undefined) return "Reading the file…";
  const { name, count } = opened;
  if (!isDone)
    return `${name}: ${exams.length.toLocaleString("en-US")} of ${counted(count)} so far`;
  return [
    `${name}: ${count === 0 ? "no tensors" : counted(count)}.`,
    ...(count === 0 ? [] : verdictsOf(exams)),
    ...(others > 0 ? ["One file is shown at a time: the other files were left alone."] : []),
  ].join(" ");
}

function verdictsOf(exams: readonly TensorExam[]): string[] {
  const compared = exams.filter(({ losses }) => losses !== undefined);
  if (compared.length === 0) return ["None has floating-point numbers that can be compared."];
  const broken = formatNames.filter((_, i) =>
    compared.some(({ losses }) => (losses?.[i]?.overflow ?? 0) > 0),
  );
  const strange = compared.filter(({ losses }) => nonFiniteOf(losses) > 0).length;
  return [
    broken.length === 0
      ? "Nothing overflows in any of the four."
      : `Overflows in ${broken.join(", ")}.`,
    ...(strange > 0
      ? [`${counted(strange)} ${strange === 1 ? "has" : "have"} NaN or infinity already.`]
      : []),
  ];
}
