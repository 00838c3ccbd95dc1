import { execFileSync } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { exampleMetrics, exampleSummary } from "../test/example-run.js";
import { CheckpointError } from "./checkpoint/checkpoint-error.js";
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

    const whole = await folder.finish(exampleSummary);
    expect(whole).toMatchObject({
      ...exampleSummary,
      versions: {
        node: process.versions.node,
        webgpu: expect.stringMatching(/^\d/),
        "@halfstep/trainer": expect.stringMatching(/^\d/),
      },
      machine: { cpu: expect.any(String), cores: expect.any(Number) },
    });
    expect(whole.machine?.memoryBytes).toBeGreaterThan(2 ** 28);
    expect(readdirSync(directory).sort()).toEqual(["metrics.jsonl", "report.html", "summary.json"]);
    expect(JSON.parse(readFileSync(join(directory, "summary.json"), "utf8"))).toEqual(whole);
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

  it("takes the place of an earlier run with its first step, not before", async () => {
    const earlier = new RunFolder(parent);
    for (const step of exampleMetrics(10)) earlier.record(step);
    await earlier.finish(exampleSummary);

    const folder = new RunFolder(parent);
    expect(readdirSync(parent).sort()).toEqual([
      "metrics.jsonl",
      "report.html",
      "run.lock",
      "summary.json",
    ]);
    expect(lines(parent)).toEqual(exampleMetrics(10));
    const [step] = exampleMetrics(1) as [StepMetrics];
    folder.record(step);
    folder.close();
    expect(readdirSync(parent)).toEqual(["metrics.jsonl"]);
    expect(lines(parent)).toEqual([step]);
  });

  it("goes on with a log where a checkpoint counts on it, and cuts off what came after", async () => {
    const earlier = new RunFolder(parent);
    for (const step of exampleMetrics(4)) earlier.record(step);
    const state = earlier.stateDict();
    earlier.record(exampleMetrics(1)[0] as StepMetrics);
    earlier.close();
    expect(state.bytes).toBeGreaterThan(100);

    const folder = new RunFolder(parent);
    folder.loadStateDict(state);
    folder.record(exampleMetrics(1)[0] as StepMetrics);
    await folder.finish(exampleSummary);
    expect(lines(parent)).toEqual([...exampleMetrics(4), exampleMetrics(1)[0]]);

    const cut = new RunFolder(parent);
    expect(() => cut.loadStateDict({ bytes: 1e6 })).toThrow(
      /metrics.jsonl has \d+ bytes, and had 1000000 when the checkpoint was saved/,
    );
    cut.close();
    expect(existsSync(join(parent, "summary.json"))).toBe(true);
  });

  const line = JSON.stringify(exampleMetrics(1)[0]);
  it.each([
    "junk",
    "null",
    "[]",
    "{}",
    "\u0000\u0000",
    line.slice(0, -9),
    line.replace('"epoch":1', '"epoch":"one"'),
    line.replace('"step":1', '"step":1e400'),
    line.replace(/"loss":[\d.]+/, '"loss":[1]'),
    '{"kind":"evaluation","precision":"O2","step":1,"epoch":1,"best":true,"values":null}',
    '{"kind":1,"precision":"O2","step":1,"epoch":1,"values":{}}',
  ])("refuses a log that is none before it goes on with it: %s", (junk) => {
    const path = join(parent, "metrics.jsonl");
    writeFileSync(path, `${line}\n${junk}\n`);
    const folder = new RunFolder(parent);
    const state = { bytes: readFileSync(path).length };
    expect(() => folder.loadStateDict(state)).toThrow(CheckpointError);
    expect(() => folder.loadStateDict(state)).toThrow(
      `${path} has no step or evaluation in line 2: restore it`,
    );
    expect(() => folder.loadStateDict(null as never)).toThrow(RangeError);
    folder.close();
  });

  it("reads no line of a log that is longer than one can be, and waits for no pipe", () => {
    const path = join(parent, "metrics.jsonl");
    writeFileSync(path, "");
    truncateSync(path, 2 ** 33);
    const folder = new RunFolder(parent);
    expect(() => folder.loadStateDict({ bytes: 2 ** 33 })).toThrow(
      `${path} has no step or evaluation in line 1`,
    );
    folder.close();
    rmSync(path);
    execFileSync("mkfifo", [path]);
    expect(() => new RunFolder(parent)).toThrow(
      `${path} cannot be written (a pipe of that name is in the way): remove it`,
    );
    expect(readdirSync(parent)).toEqual(["metrics.jsonl"]);
  });

  it("removes nothing for a log that it goes on with, until there is a first step", () => {
    const [step] = exampleMetrics(1) as [StepMetrics];
    writeFileSync(join(parent, "metrics.jsonl"), `${line}\n${line}\n`);
    writeFileSync(join(parent, "summary.json"), "{}");
    const folder = new RunFolder(parent);
    folder.loadStateDict({ bytes: line.length + 1 });
    expect(lines(parent)).toHaveLength(2);
    expect(existsSync(join(parent, "summary.json"))).toBe(true);
    folder.record(step);
    expect(lines(parent)).toEqual([step, step]);
    expect(existsSync(join(parent, "summary.json"))).toBe(false);
    // As training that begins again in one process does.
    folder.loadStateDict({ bytes: 0 });
    expect(folder.stateDict()).toEqual({ bytes: 0 });
    folder.close();
  });

  it("removes checkpoints of an earlier run with the first step, before one is saved", async () => {
    const content = { step: 9, microStep: 0, best: false, parts: {} };
    const earlier = new RunFolder(parent);
    earlier.stateDict();
    await earlier.checkpoints.save(content);
    earlier.close();
    const folder = new RunFolder(parent);
    expect((await folder.checkpoints.newest()).checkpoint).toMatchObject({ step: 9 });
    folder.stateDict();
    await folder.checkpoints.save({ ...content, step: 1 });
    expect(await folder.checkpoints.list()).toEqual([join(parent, "checkpoints", "step-00000001")]);
    folder.close();
  });

  it("leaves files of others in the folder of checkpoints", async () => {
    const checkpoints = join(parent, "checkpoints");
    mkdirSync(join(checkpoints, "step-00000009.removed"), { recursive: true });
    mkdirSync(join(checkpoints, "float16", "step-00000003"), { recursive: true });
    mkdirSync(join(checkpoints, "others", "step-3"), { recursive: true });
    for (const name of ["best.pt", "step-1.removed.zip", "model.partial", "CP_epoch5.pth"])
      writeFileSync(join(checkpoints, name), "weights");
    const folder = new RunFolder(parent);
    folder.stateDict();
    await folder.checkpoints.save({ step: 1, microStep: 0, best: false, parts: {} });
    folder.close();
    expect(readdirSync(checkpoints).sort()).toEqual([
      ...["CP_epoch5.pth", "best.pt", "model.partial"],
      ...["others", "step-00000001", "step-1.removed.zip"],
    ]);
    expect(readdirSync(join(checkpoints, "others"))).toEqual(["step-3"]);
  });

  it("refuses a folder in which it would replace a file that is of no run", () => {
    for (const name of ["report.html", "summary.json", "metrics.jsonl"]) {
      const directory = join(parent, name);
      mkdirSync(directory);
      writeFileSync(join(directory, name), "mine\n");
      expect(() => new RunFolder(directory)).toThrow(
        `${join(directory, name)} cannot be written (it is of no earlier run: move it, or choose another folder)`,
      );
      expect(readdirSync(directory)).toEqual([name]);
    }
  });

  it("is for one run at a time", () => {
    const folder = new RunFolder(parent);
    expect(() => new RunFolder(parent)).toThrow("has been writing to it since");
    folder.close();
    new RunFolder(parent).close();
  });

  it("says which write failed", () => {
    symlinkSync("/dev/full", join(parent, "metrics.jsonl"));
    const folder = new RunFolder(parent);
    const [step] = exampleMetrics(1) as [StepMetrics];
    expect(() => folder.record(step)).toThrow(
      `${join(parent, "metrics.jsonl")} cannot be written (no space left on the disk)`,
    );
    folder.close();
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
