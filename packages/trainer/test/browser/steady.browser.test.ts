import { tracePageTasks } from "@halfstep/browser";
import { afterAll, expect, test } from "vitest";
import { openJobs } from "./open-jobs.js";
import type { Steady } from "./pages/steady.js";

// A page stays usable while it trains, and steps ask of WebGPU what they must.

const jobs = await openJobs();
afterAll(() => jobs.close());

const note = (what: string): void => console.log(`note: ${what}`);

/** How often longer than alone on the machine a process takes now to compute. */
function slowness(): number {
  const [began, before] = [performance.now(), process.cpuUsage()];
  for (;;) {
    const { user, system } = process.cpuUsage(before);
    const computed = (user + system) / 1000;
    if (computed > 100) return Math.max(1, (performance.now() - began) / computed);
  }
}

/** The longest task that the page may compute where training has a thread of its own, in milliseconds. */
const longestTask = 50;

test.each(["inWorker", "inPage"] as const)("steps reuse everything, %s", async (place) => {
  let most = Number.POSITIVE_INFINITY;
  // Other work on the machine makes tasks longer: one measurement of three has to be short.
  for (let run = 0; run < (place === "inWorker" ? 3 : 1) && most >= longestTask; run++) {
    let steady: Steady | undefined;
    const tasks = await tracePageTasks(jobs.page, async () => {
      steady = await jobs.run(place, "steadySteps");
    });
    const { roundTrip, roundTrips, firstStep, ...calls } = steady as Steady;
    const { steps } = calls;
    expect(calls).toEqual({ steps, submits: steps, pipelines: 0, buffers: 0 });
    most = Math.max(...tasks.map(({ computed }) => computed));
    const slow = slowness();
    note(
      `${place}: first step ${Math.round(firstStep)} ms; meanwhile ${roundTrips} round trips of another device, at most ${Math.round(roundTrip)} ms; the main thread computed at most ${most.toFixed(1)} ms in a task; the machine was ${slow.toFixed(1)} times as slow as when it is quiet`,
    );
    // The limit is a second, with a margin of 3. If compiling blocked, one round trip would take as long as the first step.
    expect(roundTrip).toBeLessThan(3000 * slow);
    expect(roundTrips).toBeGreaterThan(10);
  }
  if (place === "inWorker") expect(most).toBeLessThan(longestTask);
  expect(jobs.messages).toEqual([]);
});
