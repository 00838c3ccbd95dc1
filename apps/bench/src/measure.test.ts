import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { type LaneName, laneNames, ours } from "./lanes/names.js";
import type { Prepared } from "./lanes/prepared.js";
import { type MeasuredWorkload, measureWorkload } from "./measure.js";
import type { Measured, Outcome } from "./results.js";
import { usualTolerance, type Workload } from "./workload.js";

const never = (): Promise<Prepared> => Promise.reject(new Error("not in the parent"));
const workload: Workload = {
  name: "sums",
  title: "Sums",
  level: "operation",
  cases: [
    {
      name: "small",
      precisions: ["float32"],
      isQuick: true,
      cost: () => ({ operations: 1e6, bytes: 1e6 }),
      tolerance: usualTolerance,
      on: { halfstep: never, jax: never },
    },
  ],
};
const peer = laneNames.find(({ name }) => name === "jax-webgpu") as LaneName;

let folder = "";
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "halfstep-lanes-"));
});
afterEach(() => {
  vi.unstubAllEnvs();
  rmSync(folder, { recursive: true });
});

/** What each process of a lane does otherwise than a well-behaved one: see fake-lane.mjs. */
interface Fake {
  readonly result?: readonly number[];
  /** Of a call, when it is warmed up; and in rounds. */
  readonly milliseconds?: number;
  readonly times?: number;
  readonly dispatches?: number;
  /** The request on which it ends, and that which it cannot do. */
  readonly dies?: string;
  readonly fails?: string;
}

interface Run {
  readonly measured: MeasuredWorkload;
  readonly said: readonly string[];
  /** What the processes of a lane were asked, one after the other. */
  readonly asked: (lane: LaneName) => readonly (readonly string[])[];
  readonly outcome: (lane: LaneName) => Outcome | undefined;
  readonly measuredOf: (lane: LaneName) => Measured;
}

async function run(fakes: Readonly<Record<string, readonly Fake[]>>, budget = 1e6): Promise<Run> {
  vi.stubEnv("FAKE_LANES", JSON.stringify(fakes));
  vi.stubEnv("FAKE_LANES_FOLDER", folder);
  const said: string[] = [];
  const measured = await measureWorkload(workload, {
    lanes: [ours, peer],
    peersFolder: "none",
    program: fileURLToPath(new URL("../test/fake-lane.mjs", import.meta.url)),
    rounds: 5,
    processes: 2,
    repetition: 10,
    budget,
    isSoftware: true,
    patience: 60_000,
    isChosen: () => true,
    say: (line) => said.push(line),
  });
  const outcome = (lane: LaneName) => measured.rows[0]?.outcomes[lane.name];
  return {
    measured,
    said,
    outcome,
    asked: (lane) =>
      readdirSync(folder)
        .filter((name) => name.startsWith(lane.name))
        .sort()
        .map((name) => readFileSync(join(folder, name), "utf8").trim().split("\n")),
    measuredOf(lane) {
      const found = outcome(lane);
      if (found?.status !== "measured") throw new Error(JSON.stringify(found));
      return found;
    },
  };
}

test("rounds are divided among fresh processes, and figures are of all of them", async () => {
  const { asked, measuredOf, said } = await run({
    "halfstep-webgpu": [{ times: 10 }, { times: 30 }],
    "jax-webgpu": [{ times: 20 }, { times: 90 }],
  });
  expect(said).toEqual([]);
  const times = (count: number) => Array.from({ length: count }, () => "time small 1");
  for (const lane of [ours, peer]) {
    expect(asked(lane)).toEqual([
      ["open", "prepare small", "warmUp small", ...times(3), "close"],
      ["open", "prepare small", "warmUp small briefly", ...times(2), "close"],
    ]);
  }
  const own = measuredOf(ours);
  expect(own.milliseconds).toMatchObject({ median: 10, least: 10, count: 5 });
  expect(own.processes).toEqual([
    { process: 1, rounds: 3, milliseconds: 10, cpuMilliseconds: 20, ratio: 1 },
    { process: 2, rounds: 2, milliseconds: 30, cpuMilliseconds: 60, ratio: 1 },
  ]);
  const { ratio, processes } = measuredOf(peer);
  expect(ratio).toBe(2);
  expect(processes.map(({ ratio }) => ratio)).toEqual([2, 3]);
});

test("a process that counts otherwise than the first is told", async () => {
  const { measuredOf } = await run({ "halfstep-webgpu": [{ dispatches: 3 }, { dispatches: 4 }] });
  const { callsPerStep, processes } = measuredOf(ours);
  expect(callsPerStep.dispatches).toBe(3);
  expect(processes.map(({ counted }) => counted)).toEqual([undefined, { dispatches: 4 }]);
});

test("results of later processes are compared with the reference, too", async () => {
  const { outcome, measuredOf, said } = await run({ "jax-webgpu": [{}, { result: [1, 3] }] });
  expect(outcome(peer)).toEqual({ status: "wrong", difference: 0.5 });
  expect(said).toEqual([
    "  small float32: jax-webgpu in process 2 differs by 0.50, where 0.00001 is allowed: not timed",
  ]);
  expect(measuredOf(ours).milliseconds.count).toBe(5);
});

test.each([
  ["open", "its process ended (exit status 9)"],
  ["prepare small", "its process ended (exit status 9)"],
  ["time small 1", "its process ended (exit status 9)"],
])(
  "a lane whose second process dies at “%s” has failed, and the others go on",
  async (dies, why) => {
    const { outcome, measuredOf, measured } = await run({ "jax-webgpu": [{}, { dies }] });
    expect(outcome(peer)).toEqual({ status: "failed", reason: `process 2: ${why}` });
    expect(measured.missing.size).toBe(0);
    expect(measuredOf(ours).processes.map(({ rounds }) => rounds)).toEqual([3, 2]);
  },
);

test("a lane that does not open is missing, and its row has no outcome", async () => {
  const { outcome, measured, asked } = await run({ "jax-webgpu": [{ fails: "open" }] });
  expect([...measured.missing]).toEqual([["jax-webgpu", "out of luck"]]);
  expect(outcome(peer)).toBeUndefined();
  expect(asked(peer).length).toBe(1);
});

test("without our own lane there is nothing to compare with", async () => {
  await expect(run({ "halfstep-webgpu": [{ dies: "open" }] })).rejects.toThrow("its process ended");
});

test("our own lane may fail in a later process as others may", async () => {
  const { outcome, measuredOf } = await run({ "halfstep-webgpu": [{}, { dies: "open" }] });
  expect(outcome(ours)?.status).toBe("failed");
  expect(measuredOf(peer).milliseconds.count).toBe(5);
});

test("a peer whose preparation takes more than its budget stays with its first process", async () => {
  const { measuredOf, asked } = await run({}, 0);
  expect(measuredOf(peer).processes.map(({ rounds }) => rounds)).toEqual([2]);
  expect(asked(peer).length).toBe(1);
  expect(measuredOf(ours).processes.map(({ rounds }) => rounds)).toEqual([1, 1]);
});
