import { tracePageTasks } from "@halfstep/browser";
import { afterAll, expect, test } from "vitest";
import { mostSteps } from "../../src/train/config.js";
import {
  figuresOf,
  hashesOf,
  obstaclesOf,
  openSite,
  photograph,
  pressed,
  reached,
  trainTo,
} from "./open-site.js";

// What differs from driver to driver: the tests of this file run on each.

const { onPage, close } = await openSite();
afterAll(close);

/** Counts calls of WebGPU from now on. Runs in the worker. */
function countCalls(): void {
  const calls = { pipelines: 0, buffers: 0, submits: 0 };
  const count = (owner: object, name: string, kind: keyof typeof calls): void => {
    const members = owner as Record<string, (...given: unknown[]) => unknown>;
    const original = members[name] as (...given: unknown[]) => unknown;
    members[name] = function (this: unknown, ...given: unknown[]) {
      calls[kind]++;
      return original.apply(this, given);
    };
  };
  count(GPUDevice.prototype, "createComputePipeline", "pipelines");
  count(GPUDevice.prototype, "createComputePipelineAsync", "pipelines");
  count(GPUDevice.prototype, "createBuffer", "buffers");
  count(GPUQueue.prototype, "submit", "submits");
  Object.assign(globalThis, { calls });
}

test("a device is measured, and leaves the bits that are expected of it", () =>
  onPage("device.html", "light", async (page) => {
    await page.getByRole("button", { name: "Copy" }).waitFor();
    const report = JSON.parse(await page.innerText("#report ~ pre"));
    expect(report.measurements[0].compiled.length).toBeGreaterThan(8);
    expect(await page.locator("text=as expected of this adapter").count()).toBe(3);
    expect(await obstaclesOf(page)).toEqual([]);
    await page.evaluate(() => {
      navigator.clipboard.writeText = () => Promise.reject(new Error("forbidden"));
    });
    await pressed(page, "Copy");
    await page.waitForSelector("text=The report is selected");
    expect(JSON.parse(await page.evaluate("getSelection().toString()"))).toEqual(report);
  }));

test("two moons are learned on the device in three precisions, and weights can be taken along", () =>
  onPage("train.html", "light", async (page) => {
    await trainTo(page, 100);
    const losses = (await figuresOf(page)).map(({ loss }) => Number(loss));
    expect(losses).toHaveLength(3);
    for (const loss of losses) expect(loss).toBeLessThan(0.1);
    await photograph(page, "train-light");
    const [download] = await Promise.all([
      page.waitForEvent("download"),
      pressed(page, "Weights (safetensors)"),
    ]);
    expect(download.suggestedFilename()).toMatch(/^float32-step-\d+\.safetensors$/);
  }));

test("while training the page answers, and the worker makes no programs and no buffers", () =>
  onPage("train.html?setups=float16.bfloat16", "light", async (page) => {
    // A pause looks at everything, and saves it: then the buffers for that are there.
    await trainTo(page, 60);
    await hashesOf(page, 2);
    await pressed(page, "Play");
    await reached(page, 80);
    const [worker] = page.workers();
    await worker?.evaluate(countCalls);
    const before = await stepOf();
    // A fast run may be past the middle by now, and ends.
    const last = Math.min(before + 200, mostSteps);
    const tasks = await tracePageTasks(page, () => reached(page, last));
    const calls = (await worker?.evaluate("calls")) as Record<string, number>;
    const steps = (await stepOf()) - before;
    const most = Math.max(...tasks.map(({ computed }) => computed));
    const waited = tasks.filter(({ milliseconds }) => milliseconds > 50).length;
    console.log(
      `note: ${steps} steps of two lanes made ${calls.submits} submits, ${calls.buffers} buffers and ${calls.pipelines} programs; the page computed at most ${most.toFixed(1)} ms in one of ${tasks.length} tasks, and ${waited} lasted over 50 ms`,
    );
    expect(calls.pipelines).toBe(0);
    // A step makes none. Reads between steps make one where more of them are under way than before.
    expect(calls.buffers).toBeLessThan(steps / 8);
    // A task that computes less and lasts longer has waited for a processor.
    expect(most).toBeGreaterThan(0);
    expect(most).toBeLessThan(50);

    async function stepOf(): Promise<number> {
      return Number(/step (\d+) of/.exec(await page.innerText("body"))?.[1]);
    }
  }));
