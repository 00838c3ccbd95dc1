import {
  chmodSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Generator } from "@halfstep/tensor";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { bundleProcess } from "./bundle.js";
import { leftBehind } from "./resumable.js";
import { type Ended, runProcess, type StartOptions, torture } from "./torture.js";

const parent = mkdtempSync(join(tmpdir(), "halfstep-processes-"));
let program: string;
let expected: Readonly<Record<string, string>>;
let expectedOnGpu: Readonly<Record<string, string>>;
/** What a run leaves that was stopped in the middle of the accumulation of step 4. */
let stopped: Readonly<Record<string, string>>;
const gpu = { device: "gpu" } as const;

const inParent = (name: string): string => join(parent, name);
const start = (name: string, options: StartOptions = {}): Promise<Ended> =>
  runProcess(program, inParent(name), options);

beforeAll(async () => {
  chmodSync(parent, 0o755);
  program = await bundleProcess("training-process");
  const ended = await Promise.all([
    start("unbroken"),
    start("gpu", { settings: gpu }),
    start("stopped", { settings: { terminateAt: 6 } }),
  ]);
  for (const [i, { code, stderr }] of ended.entries())
    if (code !== [0, 0, 143][i]) throw new Error(stderr);
  expected = leftBehind(inParent("unbroken"));
  expectedOnGpu = leftBehind(inParent("gpu"));
  stopped = leftBehind(inParent("stopped"));
}, 600_000);
afterAll(() => rmSync(parent, { recursive: true }));

describe("a process that is stopped, and another that goes on", () => {
  it("SIGTERM saves and exits within a micro-step, and the GPU's bits are those of a run without it", async () => {
    // In the middle of the accumulation of step 4.
    const stopped = await start("gpu-stopped", { settings: { ...gpu, terminateAt: 6 } });
    expect(stopped.code).toBe(143);
    const saved = "step-00000003-micro-0001";
    expect(readdirSync(inParent("gpu-stopped/checkpoints"))).toContain(saved);
    expect(readdirSync(inParent(`gpu-stopped/checkpoints/${saved}`))).toContain(
      "gradients.safetensors",
    );
    const resumed = await start("gpu-stopped", { settings: gpu });
    expect(resumed).toMatchObject({
      code: 0,
      stderr: expect.stringMatching(/going on from .*micro-0001, after step 3/),
    });
    expect(leftBehind(inParent("gpu-stopped"))).toEqual(expectedOnGpu);
  });

  it("a device that is lost ends it with 3, and nothing is lost", async () => {
    const lost = await start("lost", { settings: { ...gpu, loseAt: 6 } });
    expect(lost).toMatchObject({
      code: 3,
      stderr: expect.stringMatching(/^error: device .* was destroyed: request a new device and/m),
    });
    expect(lost.stderr).not.toMatch(/^ +at /m);
    // The log ends with a whole line, and is the beginning of that of a run without a loss.
    const log = readFileSync(inParent("lost/metrics.jsonl"), "utf8");
    expect(log).toMatch(/}\n$/);
    expect((expectedOnGpu as { log: string }).log.startsWith(log)).toBe(true);
    const [newest = ""] = readdirSync(inParent("lost/checkpoints")).sort().reverse();
    const manifest = readFileSync(inParent(`lost/checkpoints/${newest}/manifest.json`), "utf8");
    expect(JSON.parse(manifest).tables).toMatch(/^[0-9a-f]{64}$/);
    expect((await start("lost", { settings: gpu })).code).toBe(0);
    expect(leftBehind(inParent("lost"))).toEqual(expectedOnGpu);
  });

  it("data that is gone ends it with 2, and nothing is lost", async () => {
    const gone = await start("gone", { settings: { vanishAt: 6 } });
    expect(gone).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(
        /^error: \/no\/such\/data: there is no such file or folder: check/m,
      ),
    });
    expect(gone.stderr).not.toMatch(/^ +at /m);
    expect((await start("gone")).code).toBe(0);
    expect(leftBehind(inParent("gone"))).toEqual(expected);
  });

  it("a second signal ends it at once, in the middle of a save; meanwhile no other run gets the folder", async () => {
    let other: Promise<Ended> | undefined;
    const ended = await start("twice", {
      // This operation belongs to the second checkpoint.
      settings: { hangAt: 60 },
      onStdout(stdout, child) {
        if (other || !stdout.includes("hangs")) return;
        other = start("twice").finally(() => {
          child.kill("SIGINT");
          setTimeout(() => child.kill("SIGINT"), 100);
        });
      },
    });
    expect(ended).toMatchObject({ code: 130, signal: null });
    expect(await other).toMatchObject({
      code: 4,
      stderr: expect.stringMatching(
        /twice cannot be written \(process \d+ has been writing to it since .*: choose another folder, or end that run\)/,
      ),
    });
    expect(readdirSync(inParent("twice/checkpoints"))).toEqual([
      "step-00000001",
      "step-00000002.partial",
    ]);
    expect(readdirSync(inParent("twice"))).not.toContain("run.lock");
    expect((await start("twice")).code).toBe(0);
    expect(leftBehind(inParent("twice"))).toEqual(expected);
  });

  it("a file that cannot grow is a storage error, and what was saved before is intact", async () => {
    cpSync(inParent("stopped"), inParent("limit"), { recursive: true });
    // Files of at most 2 KiB: the log fits, and a checkpoint does not.
    const limited = await start("limit", {
      through: ["bash", "-c", 'ulimit -f 2; exec "$0" "$@"'],
    });
    expect(limited).toMatchObject({
      code: 4,
      stderr: expect.stringMatching(
        /step-00000004.partial.* cannot be written \(the file grows beyond what the system allows\): raise the limit.*\n$/,
      ),
    });
    const { log: _, ...files } = leftBehind(inParent("limit"));
    expect(stopped).toMatchObject(files);
    expect((await start("limit")).code).toBe(0);
    expect(leftBehind(inParent("limit"))).toEqual(expected);
  });

  it("and so is a folder that may not be written", async () => {
    cpSync(inParent("stopped"), inParent("denied"), { recursive: true });
    chmodSync(inParent("denied"), 0o777);
    chmodSync(inParent("denied/metrics.jsonl"), 0o666);
    chmodSync(inParent("denied/checkpoints"), 0o555);
    const denied = await start("denied", { settings: { unprivileged: true } });
    expect(denied).toMatchObject({
      code: 4,
      stderr: expect.stringMatching(
        /checkpoints.* cannot be written \(permission denied\): change its .*\n$/,
      ),
    });
    expect(denied.stderr).not.toMatch(/^ +at /m);
    chmodSync(inParent("denied/checkpoints"), 0o755);
    const { log: _, ...files } = leftBehind(inParent("denied"));
    expect(stopped).toMatchObject(files);
    expect((await start("denied")).code).toBe(0);
    expect(leftBehind(inParent("denied"))).toEqual(expected);
  });
});

// Two processes more, of those that are stopped above, leave the same on the GPU.
it("the same seed gives the same bits in five processes, logs included, and another seed others", async () => {
  const names = ["second", "third"];
  const ended = await Promise.all(names.map((name) => start(name, { settings: gpu })));
  expect(ended.map(({ code }) => code)).toEqual([0, 0]);
  expect(names.map((name) => leftBehind(inParent(name)))).toEqual(names.map(() => expectedOnGpu));
  expect((await start("other", { settings: { seed: 8 } })).code).toBe(0);
  expect(leftBehind(inParent("other")).log).not.toBe(expected.log);
}, 600_000);

describe("torture", () => {
  it("by ten kills leaves no checkpoint unreadable and changes no bit", {
    timeout: 300_000,
  }, async () => {
    const generator = new Generator(Number(process.env.HALFSTEP_PROPERTY_SEED ?? 2026));
    const directory = inParent("torture");
    mkdirSync(directory);
    const result = await torture({
      program,
      directory,
      kills: 10,
      random: () => generator.uniform(),
    });
    expect(result).toMatchObject({ kills: 10, unreadable: [], different: [] });
    expect(result.runs).toBeGreaterThan(0);
    expect(result.takenOver).toBeGreaterThan(0);
  });
});
