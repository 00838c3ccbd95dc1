import { expect, it } from "vitest";
import { exampleSummary } from "../test/example-run.js";
import { resultsTable } from "./results-table.js";

it("shows a row for each precision", () => {
  expect(resultsTable(exampleSummary)).toMatchInlineSnapshot(`
    "┌───────────┬───────────────┬───────────┬─────────┬───────────┬──────────┬─────────────┬──────────┬─────────────┐
    │ precision │ test accuracy │ test loss │ ms/step │ samples/s │     peak │ activations │  skipped │ final scale │
    ├───────────┼───────────────┼───────────┼─────────┼───────────┼──────────┼─────────────┼──────────┼─────────────┤
    │ float32   │       99.12 % │    0.0271 │     210 │       608 │ 98.4 MiB │    61.2 MiB │ 0 of 469 │           1 │
    │ float16   │       99.00 % │    0.0275 │     162 │       608 │ 51.2 MiB │    31.8 MiB │ 3 of 469 │      32,768 │
    │ bfloat16  │       99.12 % │    0.0271 │     165 │       608 │ 51.2 MiB │    31.8 MiB │ 0 of 469 │           1 │
    └───────────┴───────────────┴───────────┴─────────┴───────────┴──────────┴─────────────┴──────────┴─────────────┘"
  `);
});
