import Table from "cli-table3";
import { resultRows } from "./results.js";
import type { Summary } from "./summary.js";

/** The results of a summary as a table for the terminal: a row for each precision. */
export const resultsTable = (summary: Summary): string => {
  const [head = [], ...rows] = resultRows(summary);
  const table = new Table({
    head,
    colAligns: head.map((_, column) => (column === 0 ? "left" : "right")),
    style: { head: [], border: [], compact: true },
  });
  table.push(...rows);
  return table.toString();
};
