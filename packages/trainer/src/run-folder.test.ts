import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { exampleMetrics, exampleSummary } from "../test/example-run.js";
import { StorageError } from "./errors.js";
import { RunFolder } from "./run-folder.js";
import type { StepMetrics } from "./summary.js";

let parent: string;
beforeEach(() => {
  parent = mkdtempSync(join(tmpdir(), "halfstep-runs-"));
});
afterEach(() => rmSync(parent, { recursive: true }));

const lines = (directory: string): StepMetrics[] =>
  readFileSync(join(directory, "metrics.jsonl"), "utf8")
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));

describe("RunFolder", () => {
  it("holds the metrics as they come, and summary and report at the end", async () => {
    const directory = join(parent, "runs", "digits");
    const folder = new RunFolder(directory);
    const metrics = exampleMetrics(10);
    for (const step of metrics) folder.record(step);
    expect(lines(directory)).toEqual(metrics);
    expect(existsSync(join(directory, "summary.json"))).toBe(false);

    await folder.finish(exampleSummary);
    expect(readdirSync(directory).sort()).toEqual(["metrics.jsonl", "report.html", "summary.json"]);
    expect(JSON.parse(readFileSync(join(directory, "summary.json"), "utf8"))).toEqual(
      exampleSummary,
    );
    expect(readFileSync(join(directory, "report.html"), "utf8")).toContain("A red cross marks");
  });

  it("writes a loss that is not finite as null", () => {
    const folder = new RunFolder(parent);
    const [step] = exampleMetrics(1) as [StepMetrics];
    folder.record({ ...step, loss: Number.NaN });
    folder.record({ ...step, loss: Number.POSITIVE_INFINITY });
    folder.close();
    expect(lines(parent).map(({ loss }) => loss)).toEqual([null, null]);
  });

  it("starts anew in a folder that holds an earlier run", () => {
    writeFileSync(join(parent, "metrics.jsonl"), "old\n");
    new RunFolder(parent).close();
    expect(readFileSync(join(parent, "metrics.jsonl"), "utf8")).toBe("");
  });

  it("refuses steps after it was closed", () => {
    const folder = new RunFolder(parent);
    folder.close();
    expect(() => folder.record(exampleMetrics(1)[0] as StepMetrics)).toThrow(
      "record steps before finish()",
    );
  });

  it("says at once why a place cannot be used", () => {
    writeFileSync(join(parent, "file"), "");
    expect(() => new RunFolder(join(parent, "file"))).toThrow(
      `${join(parent, "file")} cannot be written (a file of that name is in the way)`,
    );
    expect(() => new RunFolder(join(parent, "file", "run"))).toThrow(StorageError);
    expect(() => new RunFolder("/proc/run")).toThrow(StorageError);
  });

  it("leaves no half-written summary behind", async () => {
    const folder = new RunFolder(parent);
    mkdirSync(join(parent, "summary.json"));
    await expect(folder.finish(exampleSummary)).rejects.toThrow(
      `${join(parent, "summary.json")} cannot be written`,
    );
    expect(existsSync(join(parent, "report.html"))).toBe(false);
  });
});
