import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { hostileFields } from "@halfstep/vitest/hostile";
import { afterAll, expect, it } from "vitest";
import { exampleSummary } from "../test/example-run.js";
import { exitCodeOf } from "./cli/program.js";
import { isRunSummary, readSummary } from "./read-summary.js";
import { renderReport } from "./report/render-report.js";
import { resultsTable } from "./results-table.js";
import { RunFolder } from "./run-folder.js";

const folder = mkdtempSync(join(tmpdir(), "halfstep-summary-"));
afterAll(() => rmSync(folder, { recursive: true }));
const path = join(folder, "summary.json");

/** "read", or the line of a refusal. */
const reading = (): Promise<string> =>
  readSummary(path).then(
    () => "read",
    (error: Error) => {
      expect(exitCodeOf(error)).toBe(2);
      return error.message;
    },
  );

it("reads what a run folder writes, with tests that are no numbers", async () => {
  const runs = exampleSummary.runs.map((run) => ({ ...run, test: { loss: Number.NaN } }));
  const settings = { lr: 0.1, limit: null, betas: [0.9, 0.99], json: true };
  const run = new RunFolder(folder);
  const written = await run.finish({ ...exampleSummary, settings, runs });
  expect(written).toMatchObject({ settings, runs });
  expect(await readSummary(path)).toEqual(written);
});

it("refuses what is no summary, or makes a table and a report of it", async () => {
  const taken = async (summary: unknown): Promise<void> => {
    writeFileSync(path, JSON.stringify(summary));
    const said = await reading();
    if (said !== "read") return expect(said).toMatch(/summary\.json is no summary of a run: /);
    const read = await readSummary(path);
    expect(resultsTable(read)).toContain("precision");
  };
  const [run] = exampleSummary.runs;
  if (!run) throw new Error("the example has no run");
  for (const { config } of hostileFields({ ...exampleSummary })) await taken(config);
  for (const { kind, config } of hostileFields({ ...run })) {
    await taken({ ...exampleSummary, runs: [config] });
    if (kind === "minus five" && isRunSummary(config))
      await renderReport({ ...exampleSummary, runs: [config] }, []);
  }
});

it("reads no more than a summary may have, and waits for nothing", async () => {
  for (const content of ["", "null", "[", "[]", `${"[".repeat(100_000)}`]) {
    writeFileSync(path, content);
    expect(await reading()).toMatch(/is no summary/);
  }
  truncateSync(path, 2 ** 32);
  expect(await reading()).toMatch(/is no summary/);
  rmSync(path);
  expect(await reading()).toMatch(/summary\.json cannot be read \(there is no such file/);
  mkdirSync(path);
  expect(await reading()).toMatch(/is no summary/);
  rmSync(path, { recursive: true });
  execFileSync("mkfifo", [path]);
  expect(await reading()).toMatch(/is no summary/);
});
