import { afterAll, describe, expect, test } from "vitest";
import { openJobs } from "./open-jobs.js";

// Training in a page goes on where it was, with the same bits, after a reload and after the GPU process has ended.

const jobs = await openJobs({ flags: ["--disable-gpu-process-crash-limit"] });
afterAll(() => jobs.close());

const steps = 400;
const kinds = ["opfs", "indexedDb"] as const;

/** Waits until the page has trained so far. */
async function reached(step: number): Promise<void> {
  while ((await jobs.page.evaluate<number>("trained.step")) < step)
    await new Promise((resolve) => setTimeout(resolve, 5));
}

describe.each(kinds)("checkpoints in %s", (kind) => {
  test("keep the contract of stores", async () => {
    expect(await jobs.run("inPage", "contractFailures", kind)).toEqual([]);
    expect(await jobs.run("inWorker", "contractFailures", kind)).toEqual([]);
  });

  test("let training go on after a reload, and after a lost device", async () => {
    const whole = await jobs.run("inPage", "trainSaved", kind, "whole", steps);
    expect(whole).toMatchObject({ resumedAt: 0, sha256: expect.any(String) });

    await jobs.page.evaluate("trained.step = 0, trained.slowFrom = 120");
    const left = jobs.run("inPage", "trainSaved", kind, "reloaded", steps).catch(() => "left");
    await reached(120);
    await jobs.page.reload();
    expect(await left).toBe("left");
    const reloaded = await jobs.run("inPage", "trainSaved", kind, "reloaded", steps);
    expect(reloaded.resumedAt).toBeGreaterThanOrEqual(100);
    expect(reloaded.sha256).toBe(whole.sha256);

    await jobs.page.evaluate("trained.step = 0, trained.slowFrom = 120");
    const lost = jobs.run("inPage", "trainSaved", kind, "lost", steps);
    await reached(120);
    const gpu = (await jobs.gpuProcess()) as number;
    const killed = performance.now();
    process.kill(gpu, "SIGKILL");
    expect((await lost).error).toMatch(/^DeviceLostError: /);
    const noticed = performance.now() - killed;
    console.log(`note: a lost device is noticed after ${Math.round(noticed)} ms`);
    // The limit is two seconds, with a margin of 3.
    expect(noticed).toBeLessThan(6000);
    await jobs.page.evaluate("trained.slowFrom = Infinity");
    const resumed = await jobs.run("inPage", "trainSaved", kind, "lost", steps);
    expect(resumed.resumedAt).toBeGreaterThanOrEqual(100);
    expect(resumed.sha256).toBe(whole.sha256);
  });
});
