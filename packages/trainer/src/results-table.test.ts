import { expect, it } from "vitest";
import { exampleSummary } from "../test/example-run.js";
import { resultsTable } from "./results-table.js";

it("shows a row for each precision", () => {
  expect(resultsTable(exampleSummary)).toMatchInlineSnapshot();
});
