import { requestTestDevice } from "@halfstep/device/testing";
import { gpuRuntime } from "@halfstep/tensor";
import { afterAll, describe, expect, test } from "vitest";
import { lineOf, ways } from "../ledger/ledger.js";
import { openJobs, openJobsInFirefox } from "./open-jobs.js";

// 20 steps of training leave the same bits in a browser as in Node on the same driver.

const isFirefox = process.env.HALFSTEP_BROWSER_LANE === "firefox";
const jobs = await (isFirefox ? openJobsInFirefox() : openJobs());
afterAll(() => jobs.close());
// Firefox has no subgroups: its programs are those of the packed tier, which does without them.
const runtime = gpuRuntime(await requestTestDevice(isFirefox ? { tier: "packed" } : {}));

const models = ["MLP", "DigitsCnn", "GPT"].map((model) => `${model}, AdamW, clipped`);

describe.each(models)("%s", (name) => {
  test.each(ways.filter((way) => way.name === name))("in $precision", async (way) => {
    const expected = await lineOf(runtime, way);
    // A worker and a page differ in nothing that computes: each is used for a part.
    const place = way.precision === "float16" ? "inPage" : "inWorker";
    expect(await jobs.run(place, "line", name, way.precision)).toBe(expected);
    expect(jobs.messages).toEqual([]);
  });
});
