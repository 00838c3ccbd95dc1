import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { exampleMetrics, exampleSummary } from "../../test/example-run.js";
import type { CheckpointContent } from "../checkpoint/checkpoint.js";
import { CheckpointFolder } from "../checkpoint/checkpoint-folder.js";
import { readCheckpoint } from "../checkpoint/read-checkpoint.js";
import { RunFolder } from "../run-folder.js";
import { writeWholeFile } from "./whole-file.js";
import { writeWholeFolder } from "./whole-folder.js";

// Relative paths belong to the working directory in which they were given, also where the process leaves it.

const before = process.cwd();
let first: string;
let second: string;
beforeEach(() => {
  const parent = mkdtempSync(join(tmpdir(), "halfstep-located-"));
  [first, second] = [join(parent, "first"), join(parent, "second")];
  for (const folder of [first, second]) mkdirSync(folder);
  process.chdir(first);
});
afterEach(() => {
  process.chdir(before);
  rmSync(join(first, ".."), { recursive: true });
});

const content = (step: number, best = false): CheckpointContent => ({
  ...{ step, microStep: 0, best },
  parts: { training: { step } },
});

describe("a relative path", () => {
  it("of a folder of checkpoints stays what it was, and is shown as it was given", async () => {
    const folder = new CheckpointFolder("runs/checkpoints", { keep: 1 });
    await folder.save(content(1, true));
    process.chdir(second);
    await folder.save(content(2));
    await folder.save(content(2, true));
    await folder.save(content(3));
    const { checkpoint } = await folder.newest();
    expect(checkpoint).toMatchObject({ step: 3, path: "runs/checkpoints/step-00000003" });
    expect(await folder.best()).toMatchObject({ step: 2 });
    const [newest = ""] = await folder.list();
    expect(await readCheckpoint(newest)).toMatchObject({ step: 3 });
    expect(readdirSync(second)).toEqual([]);

    rmSync(join(newest, "state.json"));
    const { skipped } = await folder.newest();
    expect(skipped[0]?.message).toMatch(
      /^runs\/checkpoints\/step-00000003\/state\.json is missing/,
    );
    await folder.clear();
    expect(readdirSync(join(first, "runs/checkpoints"))).toEqual([]);
    expect(readdirSync(second)).toEqual([]);
  });

  it("of a run folder stays what it was, to its end", async () => {
    const earlier = new RunFolder("runs/digits");
    earlier.record(exampleMetrics(1)[0] as never);
    await earlier.checkpoints.save(content(1));
    earlier.close();
    const folder = new RunFolder("runs/digits");
    process.chdir(second);
    for (const step of exampleMetrics(3)) folder.record(step);
    expect(await folder.checkpoints.list()).toEqual([]);
    await folder.checkpoints.save(content(3));
    folder.loadStateDict(folder.stateDict());
    await folder.finish(exampleSummary);
    const names = ["checkpoints", "metrics.jsonl", "report.html", "summary.json"];
    expect(readdirSync(join(first, "runs/digits")).sort()).toEqual(names);
    const lines = readFileSync(join(first, "runs/digits/metrics.jsonl"), "utf8").match(/\n/g);
    expect(lines).toHaveLength(exampleMetrics(3).length);
    expect(readdirSync(second)).toEqual([]);
    expect(() => folder.record(exampleMetrics(1)[0] as never)).toThrow(
      /^runs\/digits\/metrics\.jsonl is closed/,
    );
  });

  it("of a file or folder that is being written stays what it was", async () => {
    const written = writeWholeFile("out", async (sink) => {
      process.chdir(second);
      await sink.write(Uint8Array.of(65));
    });
    await written;
    process.chdir(first);
    await writeWholeFolder("model", async (folder) => {
      process.chdir(second);
      await folder.write("config.json", "{}");
    });
    process.chdir(first);
    await writeWholeFolder("model", async (folder) => {
      process.chdir(second);
      await folder.write("vocabulary.txt", "a");
    });
    expect(readdirSync(first).sort()).toEqual(["model", "out"]);
    expect(readdirSync(join(first, "model")).sort()).toEqual(["config.json", "vocabulary.txt"]);
    expect(existsSync(join(second, "model"))).toBe(false);
    expect(readdirSync(second)).toEqual([]);
  });
});
