import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, expect, it } from "vitest";
import { readRuns, runStudy } from "./run-study.mjs";

const folder = mkdtempSync(join(tmpdir(), "halfstep-study-test-"));
afterAll(() => rmSync(folder, { recursive: true }));

it("appends a line for each run that succeeds, and says what was wrong with the others", async () => {
  const bundle = join(folder, "study.mjs");
  writeFileSync(
    bundle,
    `export default {
      async run(variant, seed) {
        console.log("noise");
        if (variant === "broken") throw new RangeError("it diverged");
        return { metric: 90 + seed, loss: Number.NaN, wallSeconds: 2.4, peakBytes: 1, skippedSteps: 0 };
      },
    };`,
  );
  const file = join(folder, "study.jsonl");
  const said = [];
  const missing = [
    { variant: "float32", seed: 0 },
    { variant: "broken", seed: 0 },
    { variant: "float32", seed: 1 },
  ];
  const failed = await runStudy({
    ...{ bundle, missing, file, machine: "here" },
    say: (line) => said.push(line),
  });
  expect(failed).toBe(1);
  expect(said).toEqual([
    "float32, seed 0: 90, in 2 s",
    "failed: broken, seed 0: RangeError: it diverged",
    "float32, seed 1: 91, in 2 s",
  ]);
  expect(readFileSync(file, "utf8").split("\n")).toHaveLength(3);
  const [first] = readRuns(file);
  expect(first).toEqual({
    variant: "float32",
    seed: 0,
    machine: "here",
    outcome: { metric: 90, loss: null, wallSeconds: 2.4, peakBytes: 1, skippedSteps: 0 },
  });
  expect(readRuns(join(folder, "none.jsonl"))).toEqual([]);
});

it.each([
  [[], "name an app that has a study, one of digits, "],
  [["nosuch"], "name an app that has a study, one of digits, "],
  [["digits", "--seed", "3"], "Unknown option '--seed'"],
  [["digits", "--out"], "Option '--out <value>' argument missing"],
])("wrong usage is said in one line: %j", (args, message) => {
  const script = fileURLToPath(new URL("../study.mjs", import.meta.url));
  const { status, stderr } = spawnSync(process.execPath, [script, ...args], { encoding: "utf8" });
  expect([status, stderr.trimEnd().split("\n").length]).toEqual([2, 1]);
  expect(stderr).toContain(message);
});
