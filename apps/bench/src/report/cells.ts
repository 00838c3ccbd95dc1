/** The cells of a report's tables. */
import { ours } from "../lanes/names.js";
import type { Measured, Outcome, Row } from "../results.js";

export interface Table {
  readonly title: string;
  readonly note: string;
  readonly columns: readonly string[];
  readonly rows: readonly (readonly Cell[])[];
}

export interface Cell {
  readonly text: string;
  /** Whether the cell shows a peer that is faster than Halfstep, and is therefore highlighted. */
  readonly isLoss?: boolean;
}

export const cell = (text: string): Cell => ({ text });
export const nothing: Cell = cell("–");

export const measured = (row: Row, lane: string): Measured | undefined => {
  const outcome = row.outcomes[lane];
  return outcome?.status === "measured" ? outcome : undefined;
};

export const labelOf = (row: Row): string =>
  row.name.includes(row.workload) ? row.name : `${row.workload} ${row.name}`;

export function shortOutcome(row: Row, lane: string): Cell {
  const outcome: Outcome | undefined = row.outcomes[lane];
  return outcome && (outcome.status === "wrong" || outcome.status === "failed")
    ? cell(outcome.status)
    : nothing;
}

/** Our own float32 figures of the case that a row in half precision is of. */
export function float32Of(row: Row, rows: readonly Row[]): Measured | undefined {
  if (row.precision === "float32" || row.level === "scaling") return undefined;
  const single = rows.find(
    ({ workload, name, precision }) =>
      workload === row.workload && name === row.name && precision === "float32",
  );
  return single && measured(single, ours.name);
}
