import { afterAll, expect, test } from "vitest";
import { openJobs } from "./open-jobs.js";

// A page stays usable while it trains, and steps ask of WebGPU what they must.

const jobs = await openJobs();
afterAll(() => jobs.close());

const note = (what: string): void => console.log(`note: ${what}`);

test.each(["inWorker", "inPage"] as const)("steps reuse everything, %s", async (place) => {
  await jobs.page.evaluate("longTasks.length = 0");
  const { roundTrip, roundTrips, firstStep, ...calls } = await jobs.run(place, "steadySteps");
  const { steps } = calls;
  expect(calls).toEqual({ steps, submits: steps, pipelines: 0, buffers: 0 });
  const tasks = await jobs.page.evaluate<number[]>("longTasks");
  note(
    `${place}: first step ${Math.round(firstStep)} ms; meanwhile ${roundTrips} round trips of another device, at most ${Math.round(roundTrip)} ms; ${tasks.length} tasks of the main thread over 50 ms`,
  );
  // The limit is a second, with a margin of 3, or more where others use the machine. If compiling blocked, there would be one.
  expect(roundTrip).toBeLessThan(Math.max(3000, firstStep / 2));
  expect(roundTrips).toBeGreaterThan(10);
  if (place === "inWorker") expect(tasks.filter((task) => task > 150)).toEqual([]);
  expect(jobs.messages).toEqual([]);
});
