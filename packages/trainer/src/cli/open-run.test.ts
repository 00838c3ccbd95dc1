import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { GradScaler } from "@halfstep/grad-scaler";
import { AdamW } from "@halfstep/optim";
import { ampPrimitives, flatten } from "@halfstep/tensor";
import { afterAll, afterEach, describe, expect, it, vi } from "vitest";
import { classifier, lossOf, type Samples, sampleBatches } from "../../test/classes.js";
import { loopbackServer } from "../../test/loopback-server.js";
import { type ContextCheckpoints, type RunContext, withParts } from "../run-context.js";
import { runSummary } from "../run-summary.js";
import type { RunSummary } from "../summary.js";
import { train } from "../train.js";
import { type OpenRunOptions, openRun } from "./open-run.js";

const parent = mkdtempSync(join(tmpdir(), "halfstep-open-run-"));
afterAll(() => rmSync(parent, { recursive: true }));
afterEach(() => {
  vi.restoreAllMocks();
  vi.unstubAllEnvs();
});

const steps = 6;

/** A recipe as an app has it. Undefined if it was stopped. */
async function recipe(run: RunContext, stopAfter?: number): Promise<RunSummary | undefined> {
  const startedAt = performance.now();
  const model = classifier(run.runtime);
  const groups = [flatten(model.parameters())];
  const optimizer = new AdamW(run.runtime.target, groups[0] as (typeof groups)[number], {
    lr: 0.01,
  });
  const scaler = new GradScaler(ampPrimitives(run.runtime), { outcomeSchedule: false });
  const result = await train<Samples>({
    ...{ runtime: run.runtime, precision: "float16", optimizer, scaler, epochs: 1 },
    loss: (batch) => lossOf(model, batch),
    batches: () => sampleBatches(steps, 16, 0),
    lr: () => 0.01,
    signal: run.signal,
    hooks: {
      ...run.hooks,
      stop: {
        afterStep: ({ step }) => void (step === stopAfter && process.emit("SIGTERM")),
      },
    },
    checkpoints: withParts(run.checkpoints, { model, optimizer }),
  });
  if (result.isAborted) return undefined;
  return runSummary({
    ...{ precision: "float16", result, model, groups, startedAt, peakBytes: undefined },
    ...{ test: { loss: 0.5 }, moments: 2, samplesPerStep: 16 },
  });
}

interface Outcome {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** A `train` command. */
async function command(
  name: string,
  flags: Partial<OpenRunOptions> = {},
  stopAfter?: number,
  isShown?: boolean,
): Promise<Outcome> {
  const said = { stdout: "", stderr: "" };
  for (const stream of ["stdout", "stderr"] as const)
    vi.spyOn(process[stream], "write").mockImplementation((text) => {
      said[stream] += text;
      return true;
    });
  const options: OpenRunOptions = {
    ...{ task: "points", settings: { lr: 0.01 }, seed: 3, saveEvery: 2 },
    ...{ out: join(parent, name), json: false },
    device: "cpu",
    ...flags,
  };
  using run = await openRun(options);
  const context = run.follow({ label: "float16", epochs: 1, steps, batchSize: 16 });
  const summary = await recipe(context, stopAfter);
  const sections = [{ title: "Points", html: "<p>all of them</p>" }];
  const results = { sections, lines: "and more", note: "by the way", isShown };
  const code = await run.finish(summary, results);
  return { code, ...said };
}

const eventsOf = (name: string): readonly string[] => {
  const folder = join(parent, name, "tensorboard/float16");
  return existsSync(folder) ? readdirSync(folder).sort() : [];
};

describe("openRun", () => {
  it("is a train command from its folder to its exit code", async () => {
    const listeners = process.listenerCount("SIGTERM");
    const ended = await command("whole");
    expect(ended.code).toBe(0);
    expect(ended.stdout).toMatch(/precision.*test loss[\s\S]*float16[\s\S]*\nand more\n$/);
    expect(ended.stderr).toMatch(
      /float16 · epoch 1\/1 · step 6\/6 .*\nby the way\nreport: .*report\.html\n$/,
    );
    const summary = JSON.parse(readFileSync(join(parent, "whole/summary.json"), "utf8"));
    expect(summary).toMatchObject({
      ...{ schema: 1, task: "points", seed: 3, device: { kind: "cpu" } },
      runs: [{ precision: "float16", steps }],
    });
    const report = readFileSync(join(parent, "whole/report.html"), "utf8");
    expect(report).toMatch(/<h2>Points<\/h2>\n<p>all of them<\/p>\n<\/section>\n<\/body>/);
    expect(readdirSync(join(parent, "whole")).sort()).toEqual(
      ["checkpoints", "metrics.jsonl", "report.html", "summary.json"].sort(),
    );
    expect(process.listenerCount("SIGTERM")).toBe(listeners);
  });

  it("tells trackers of the run, and goes on there", async () => {
    await using server = await loopbackServer(({ path }) => [
      200,
      path.endsWith("runs/create")
        ? { run: { info: { run_id: "r1" } } }
        : { experiment: { experiment_id: "0" }, runs: [{ info: { run_id: "r1" } }] },
    ]);
    await expect(command("untracked", { mlflow: true })).rejects.toThrow(
      "--mlflow: MLFLOW_TRACKING_URI is not set",
    );
    vi.stubEnv("MLFLOW_TRACKING_URI", server.address);
    expect(await command("tracked", { mlflow: true }, 3)).toMatchObject({ code: 143 });
    await command("tracked", { mlflow: true, resume: "auto" });
    const bodies = server.received.map(({ body }) => body);
    expect(bodies.find(({ run_name }) => run_name)).toMatchObject({ run_name: "points float16" });
    const states = bodies.flatMap(({ status }) => (status === undefined ? [] : [status]));
    expect(states).toEqual(["KILLED", "RUNNING", "FINISHED"]);
    const steps = bodies.flatMap(({ metrics = [] }) =>
      (metrics as { key: string; step: number }[]).filter(({ key }) => key === "train/loss"),
    );
    expect(steps.map(({ step }) => step)).toEqual([1, 2, 3, 4, 5, 6]);
  });

  it("prints the summary alone with --json", async () => {
    const { stdout } = await command("json", { json: true });
    expect(JSON.parse(stdout)).toMatchObject({ task: "points", runs: [{ steps }] });
  });

  it("says how a run that was stopped goes on, and goes on with its bits", async () => {
    const whole = JSON.parse((await command("unbroken", { json: true })).stdout);
    const stopped = await command("broken", {}, 3);
    expect(stopped).toMatchObject({ code: 143, stdout: "" });
    expect(stopped.stderr).toMatch(
      new RegExp(`stopped; --resume auto --out ${join(parent, "broken")} goes on from here\n$`),
    );
    const other = command("broken", { resume: "auto", settings: { lr: 0.1 } });
    await expect(other).rejects.toThrow(/was saved with --lr 0.01, not 0.1/);
    const resumed = await command("broken", { resume: "auto", json: true });
    expect(resumed.stderr).toMatch(/^going on from .*step-00000003, after step 3\n/);
    expect(JSON.parse(resumed.stdout).runs[0].parameterSha256).toBe(whole.runs[0].parameterSha256);
    expect(readFileSync(join(parent, "broken/metrics.jsonl"))).toEqual(
      readFileSync(join(parent, "unbroken/metrics.jsonl")),
    );
  });

  it("leaves it to others to show the results of one of several runs", async () => {
    const whole = await command("part", {}, undefined, false);
    expect(whole).toMatchObject({ code: 0, stdout: "" });
    expect(whole.stderr).toMatch(/step 6\/6 .*\n$/);
    expect(JSON.parse(readFileSync(join(parent, "part/summary.json"), "utf8"))).toMatchObject({
      runs: [{ steps }],
    });
    const stopped = await command("part", {}, 3, false);
    expect(stopped).toMatchObject({ code: 143, stdout: "" });
    expect(stopped.stderr).not.toContain("stopped");
  });

  it("writes event files with --tensorboard: one for each process, none of a run that is replaced", async () => {
    await command("events", { tensorboard: true }, 3);
    await command("events", { tensorboard: true, resume: "auto" });
    expect(eventsOf("events")).toHaveLength(2);
    await command("events", { tensorboard: true }, 3);
    expect(eventsOf("events")).toHaveLength(1);
    await command("events", {}, 3);
    expect(eventsOf("events")).toEqual([]);
    // The flag may come later.
    expect(await command("events", { tensorboard: true, resume: "auto" })).toMatchObject({
      code: 0,
    });
    expect(eventsOf("events")).toHaveLength(1);
  });

  it("gives the folder free where training fails", async () => {
    const failing = async (): Promise<void> => {
      using run = await openRun({
        ...{ task: "points", settings: {}, seed: 0, saveEvery: 2, device: "cpu", json: false },
        out: join(parent, "failing"),
      });
      run.follow({ label: "float16", epochs: 1, steps, batchSize: 16 });
      throw new Error("it diverged");
    };
    await expect(failing()).rejects.toThrow("it diverged");
    await expect(failing()).rejects.toThrow("it diverged");
    expect(existsSync(join(parent, "failing/run.lock"))).toBe(false);
  });
});

it("withParts adds to checkpoints, where there are any", () => {
  const part = { stateDict: () => 1, loadStateDict: () => {} };
  const parts = { model: classifier, optimizer: part } as never;
  const checkpoints = { parts: { log: part }, store: {}, onNote: undefined } as unknown;
  expect(withParts(undefined, parts)).toBeUndefined();
  expect(withParts(checkpoints as ContextCheckpoints, parts)).toEqual({
    ...{ store: {}, parts: { log: part, model: classifier, optimizer: part } },
  });
});
