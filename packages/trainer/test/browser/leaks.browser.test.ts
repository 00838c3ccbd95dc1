import { growthText, memoryFlags, memoryOf, watchMemory } from "@halfstep/browser";
import { afterAll, expect, test } from "vitest";
import { openJobs } from "./open-jobs.js";

// Steps of a long run leave nothing behind. It takes HALFSTEP_LEAK_MINUTES, by default half an hour.

const minutes = Number(process.env.HALFSTEP_LEAK_MINUTES ?? 30);
const jobs = await openJobs({ flags: memoryFlags });
afterAll(() => jobs.close());

const seconds = (count: number): Promise<void> =>
  new Promise((resolve) => setTimeout(resolve, 1000 * count));

const trained = (): Promise<{ step: number; live: number; pooled: number }> =>
  jobs.page.evaluate("trained");

test("training with checkpoints holds no more after many steps than after few", {
  timeout: (minutes + 10) * 60_000,
}, async () => {
  // It ends with the page.
  const ended = jobs.run("inPage", "trainSaved", "opfs", "endless", 1e9).catch(() => undefined);
  const growths = await watchMemory({
    minutes,
    async sample() {
      await seconds(Math.min(5, minutes * 3));
      const { live, pooled } = await trained();
      const held = await memoryOf(jobs, jobs.page);
      return { ...held, "live buffers": live, "pooled buffers": pooled };
    },
  });
  const { step } = await trained();
  await jobs.page.goto("about:blank");
  expect(await ended).toBeUndefined();
  console.log(`note: ${step} steps of an MLP with checkpoints in ${minutes} minutes`);
  for (const [name, growth] of Object.entries(growths))
    console.log(`note: ${name}: ${growthText(growth)}`);
  expect(Object.values(growths).filter(({ isLeak }) => isLeak)).toEqual([]);
  expect(growths["live buffers"]?.grown).toBe(0);
  expect(jobs.messages).toEqual([]);
});
