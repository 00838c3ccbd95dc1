import { chmodSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Generator } from "@halfstep/tensor";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { bundleTrainingProcess } from "./bundle.js";
import { leftBehind } from "./resumable.js";
import { type Ended, runProcess, type StartOptions, torture } from "./torture.js";

const parent = mkdtempSync(join(tmpdir(), "halfstep-processes-"));
let program: string;
let expected: Readonly<Record<string, string>>;

const inParent = (name: string): string => join(parent, name);
const start = (name: string, options: StartOptions = {}): Promise<Ended> =>
  runProcess(program, inParent(name), options);

beforeAll(async () => {
  chmodSync(parent, 0o755);
  program = await bundleTrainingProcess();
  const { code, stderr } = await start("unbroken");
  if (code !== 0) throw new Error(stderr);
  expected = leftBehind(inParent("unbroken"));
});
afterAll(() => rmSync(parent, { recursive: true }));

describe("a process that is stopped, and another that goes on", () => {
  it("SIGTERM saves and exits within a micro-step, and the GPU's bits are those of a run without it", async () => {
    const gpu = { device: "gpu" } as const;
    const [unbroken, stopped] = await Promise.all([
      start("gpu-unbroken", { settings: gpu }),
      // In the middle of the accumulation of step 4.
      start("gpu", { settings: { ...gpu, terminateAt: 6 } }),
    ]);
    expect([unbroken.code, stopped.code]).toEqual([0, 143]);
    const saved = "step-00000003-micro-0001";
    expect(readdirSync(inParent("gpu/checkpoints"))).toContain(saved);
    expect(readdirSync(inParent(`gpu/checkpoints/${saved}`))).toContain("gradients.safetensors");
    const resumed = await start("gpu", { settings: gpu });
    expect(resumed).toMatchObject({
      code: 0,
      stderr: expect.stringMatching(/going on from .*micro-0001, after step 3/),
    });
    expect(leftBehind(inParent("gpu"))).toEqual(leftBehind(inParent("gpu-unbroken")));
  });

  it("a second signal ends it at once, in the middle of a save; meanwhile no other run gets the folder", async () => {
    let other: Promise<Ended> | undefined;
    let hangs = 0;
    const ended = await start("twice", {
      // This operation belongs to the second checkpoint.
      settings: { hangAt: 60 },
      onStdout(stdout, child) {
        if (other || !stdout.includes("hangs")) return;
        hangs = performance.now();
        other = start("twice").finally(() => {
          child.kill("SIGINT");
          setTimeout(() => child.kill("SIGINT"), 100);
        });
      },
    });
    expect(ended).toMatchObject({ code: 130, signal: null });
    expect(performance.now() - hangs).toBeLessThan(20_000);
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
    expect((await start("limit", { settings: { terminateAt: 6 } })).code).toBe(143);
    const before = leftBehind(inParent("limit"));
    // Files of at most 2 KiB: the log fits, and a checkpoint does not.
    const limited = await start("limit", {
      through: ["bash", "-c", 'ulimit -f 2; exec "$0" "$@"'],
    });
    expect(limited).toMatchObject({
      code: 4,
      stderr: expect.stringMatching(
        /step-00000004.partial.* cannot be written \(the file grows beyond what the system allows\)\n$/,
      ),
    });
    const { log: _, ...files } = leftBehind(inParent("limit"));
    expect(before).toMatchObject(files);
    expect((await start("limit")).code).toBe(0);
    expect(leftBehind(inParent("limit"))).toEqual(expected);
  });

  it("and so is a folder that may not be written", async () => {
    expect((await start("denied", { settings: { terminateAt: 6 } })).code).toBe(143);
    const before = leftBehind(inParent("denied"));
    chmodSync(inParent("denied"), 0o777);
    chmodSync(inParent("denied/metrics.jsonl"), 0o666);
    chmodSync(inParent("denied/checkpoints"), 0o555);
    const denied = await start("denied", { settings: { unprivileged: true } });
    expect(denied).toMatchObject({
      code: 4,
      stderr: expect.stringMatching(/checkpoints.* cannot be written \(permission denied\)\n$/),
    });
    expect(denied.stderr).not.toMatch(/^ +at /m);
    chmodSync(inParent("denied/checkpoints"), 0o755);
    const { log: _, ...files } = leftBehind(inParent("denied"));
    expect(before).toMatchObject(files);
    expect((await start("denied")).code).toBe(0);
    expect(leftBehind(inParent("denied"))).toEqual(expected);
  });
});

describe("torture", () => {
  it("by ten kills leaves no checkpoint unreadable and changes no bit", async () => {
    const generator = new Generator(Date.now());
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
