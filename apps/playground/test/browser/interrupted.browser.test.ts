import { afterAll, expect, test } from "vitest";
import { hashesOf, openSite, type Page, pausedAt, pressed, reached } from "./open-site.js";

// Training that a reload or the end of the GPU process interrupts goes on by itself, to the weights of a run without interruption.

const site = await openSite({ flags: ["--disable-gpu-process-crash-limit"] });
afterAll(() => site.close());

const address = "train.html?setups=float16";
const steps = 500;

/** Waits for the end, and returns the hash of the weights. */
async function finished(page: Page): Promise<string[]> {
  await reached(page, steps);
  return hashesOf(page, 1);
}

test("a lost GPU is named, and training ends with the same weights; so it does after a reload", async () => {
  let expected: string[] = [];
  await site.onPage(address, "light", async (page) => {
    await pressed(page, "Play");
    expected = await finished(page);
  });

  await site.onPage(address, "light", async (page) => {
    await pressed(page, "Play");
    await reached(page, 20);
    const gpu = (await site.gpuProcess()) as number;
    await reached(page, 100);
    const killed = performance.now();
    process.kill(gpu, "SIGKILL");
    await page.waitForSelector("text=The GPU was lost at step");
    const noticed = performance.now() - killed;
    console.log(`note: the page names a lost GPU after ${Math.round(noticed)} ms`);
    // The limit is two seconds, with a margin of 3.
    expect(noticed).toBeLessThan(6000);
    await page.waitForSelector("text=is back. Training goes on from step");
    await pausedAt(page, 250);
    const before = await hashesOf(page, 1);
    await page.reload();
    await page.waitForSelector("text=where this page was left");
    await reached(page, 250);
    expect(before).not.toEqual(expected);
    await pressed(page, "Play");
    expect(await finished(page)).toEqual(expected);
  });
});
