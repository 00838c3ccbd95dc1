import { growthText, memoryFlags, memoryOf, watchMemory } from "@halfstep/browser";
import { afterAll, expect, test } from "vitest";
import { hashesOf, openSite, type Page, pressed, reached } from "./open-site.js";

// Runs leave nothing behind when they are reset. It takes HALFSTEP_LEAK_MINUTES, by default half an hour.

const minutes = Number(process.env.HALFSTEP_LEAK_MINUTES ?? 30);
const site = await openSite({ flags: memoryFlags });
afterAll(() => site.close());

/** The buffers of WebGPU that are not destroyed. */
interface HeldBuffers {
  count: number;
  bytes: number;
}

/** Counts buffers from now on. Runs in the worker. */
function countBuffers(): void {
  const buffers: HeldBuffers = { count: 0, bytes: 0 };
  const held = new WeakSet<GPUBuffer>();
  const { createBuffer } = GPUDevice.prototype;
  GPUDevice.prototype.createBuffer = function (descriptor) {
    const buffer = createBuffer.call(this, descriptor);
    held.add(buffer);
    buffers.count++;
    buffers.bytes += buffer.size;
    return buffer;
  };
  const { destroy } = GPUBuffer.prototype;
  GPUBuffer.prototype.destroy = function () {
    if (held.delete(this)) {
      buffers.count--;
      buffers.bytes -= this.size;
    }
    return destroy.call(this);
  };
  Object.assign(globalThis, { buffers });
}

test(
  "runs that are reset hold no more after many than after few",
  {
    timeout: (minutes + 10) * 60_000,
  },
  () =>
    site.onPage("train.html?setups=float16.bfloat16", "light", async (page) => {
      const worker = page.workers()[0] as ReturnType<Page["workers"]>[number];
      await worker.evaluate(countBuffers);
      let runs = 0;
      const growths = await watchMemory({
        minutes,
        async sample() {
          await pressed(page, "Reset");
          await page.waitForSelector("text=step 0 of");
          await pressed(page, "Play");
          await reached(page, 500);
          await hashesOf(page, 2);
          runs++;
          const { bytes } = (await worker.evaluate("buffers")) as HeldBuffers;
          return { ...(await memoryOf(site, page)), "GPU buffers": bytes };
        },
      });
      console.log(`note: ${runs} runs of 500 steps in two lanes in ${minutes} minutes`);
      for (const [name, growth] of Object.entries(growths))
        console.log(`note: ${name}: ${growthText(growth)}`);
      expect(Object.values(growths).filter(({ isLeak }) => isLeak)).toEqual([]);
    }),
);
