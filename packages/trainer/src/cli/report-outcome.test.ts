import { expect, it } from "vitest";
import { exampleSummary } from "../../test/example-run.js";
import type { RunSummary } from "../summary.js";
import { reportOutcome } from "./report-outcome.js";

const [run] = exampleSummary.runs as [RunSummary];

it("is 1 where training diverged; where no step was applied there is a warning", () => {
  const said: string[] = [];
  const of = (...runs: readonly RunSummary[]): number =>
    reportOutcome({ runs }, (line) => said.push(line));
  expect(of(run)).toBe(0);
  expect(said).toEqual([]);
  expect(of(run, { ...run, precision: "float16", appliedSteps: 0 })).toBe(0);
  expect(said.splice(0)).toEqual([
    expect.stringMatching(/^warning: no step of float16 was applied: .*lower --init-scale/),
  ]);
  const hyperparameters = { optimizer: {}, lossScale: { dynamic: false, initScale: 1e8 } };
  expect(of({ ...run, precision: "O2", appliedSteps: 0, hyperparameters })).toBe(0);
  expect(said.splice(0)).toEqual([
    "warning: no step of O2 was applied: the gradients overflowed at the fixed loss scale, and the model is as it began; take a lower one, or a dynamic one",
  ]);
  const untested = { ...run, isTested: false as const, test: { loss: Number.NaN } };
  expect(of(untested)).toBe(0);
  expect(said).toEqual([]);
  expect(of({ ...run, test: { ...run.test, loss: Number.NaN } })).toBe(1);
  expect(said).toEqual([expect.stringMatching(/^error: the test loss of .* is not finite/)]);
});
