import { requestDevice } from "@halfstep/device/node";
import { requestTestDevice, type TestTier, testTiers } from "@halfstep/device/testing";
import { describe, expect, test } from "vitest";
import {
  cpuRunner,
  gpuRunner,
  type Invocation,
  type Memory,
  type Plan,
  type Runner,
} from "./index.js";
import { type RunnerSubject, runnerContract } from "./testing.js";

const onCpu: RunnerSubject = {
  name: "CPU",
  create: () => cpuRunner(),
  createWithBudget: (memoryBudget) => cpuRunner({ memoryBudget }),
};

/** Every tier but the packed one is the best of its adapter. */
const wish = (tier: TestTier): { tier?: "packed" } => (tier === "packed" ? { tier } : {});

const onGpu = (await testTiers()).map(
  (tier): RunnerSubject => ({
    name: `GPU, ${tier}`,
    create: async () => gpuRunner(await requestTestDevice({ tier })),
    createWithBudget: async (memoryBudget) =>
      gpuRunner(await requestDevice({ ...wish(tier), memoryBudget })),
    async createFailing() {
      const device = await requestDevice(wish(tier));
      return { runner: gpuRunner(device), fail: () => device.destroy() };
    },
  }),
);

describe.each([onCpu, ...onGpu])("$name", (subject) => {
  for (const { name, run } of runnerContract(subject)) test(name, run);
});

describe("the contract can fail", () => {
  /** The cases that fail for a runner that differs from the CPU runner in some members. */
  const failures = async (differing: (runner: Runner) => Partial<Runner>): Promise<string[]> => {
    const failed: string[] = [];
    const create = (): Runner => {
      const runner = cpuRunner();
      return { ...runner, ...differing(runner) };
    };
    for (const { name, run } of runnerContract({ name: "broken", create }))
      await run().catch((error: unknown) => failed.push(`${name}: ${error}`));
    return failed;
  };

  test("when a read shows what is written after it", async () => {
    const failed = await failures(({ read }) => ({
      read: async (...call) => {
        await undefined;
        return read(...call);
      },
    }));
    expect(failed).toContainEqual(expect.stringContaining("reads what was written before: Error"));
    expect(failed).toContainEqual(expect.stringContaining("shows what each launch of training"));
  });

  test("when memory is handed out again as it was", async () => {
    const free: Memory[] = [];
    const failed = await failures(({ allocate }) => ({
      allocate: (bytes) => free.pop() ?? allocate(Math.max(bytes, 4096)),
      release: (memory) => free.push(memory),
    }));
    expect(failed).toContainEqual(expect.stringContaining("allocates zeros: Error"));
    expect(failed).toContainEqual(expect.stringContaining("that was released: Error"));
  });

  test("when a plan keeps the scalars or the residents of its first run", async () => {
    const first = new WeakMap<Plan, Invocation>();
    const stale = (change: (first: Invocation) => Partial<Invocation>) =>
      failures(({ start }) => ({
        start(plan, invocation) {
          const earlier = first.get(plan) ?? invocation;
          first.set(plan, earlier);
          return start(plan, { ...invocation, ...change(earlier) });
        },
      }));
    const scalars = await stale(({ scalar }) => ({ scalar }));
    expect(scalars).toContainEqual(expect.stringContaining("computes elementwise ops: "));
    const residents = await stale((earlier) => ({ residents: earlier.residents }));
    expect(residents).toEqual([
      expect.stringContaining("computes plans that take turns: Error"),
      expect.stringContaining("runs a plan with other residents: Error"),
    ]);
  });

  test("when a run begins anew after it has stopped", async () => {
    const failed = await failures(({ start }) => ({
      start(plan, invocation) {
        const run = start(plan, invocation);
        return {
          ...run,
          finish() {
            run.abandon();
            return start(plan, invocation).finish();
          },
        };
      },
    }));
    expect(failed).toEqual([
      expect.stringContaining("stops before any launch of training: Error"),
      expect.stringContaining("between launches: Error"),
    ]);
  });

  test("when a failed runner lets steps begin", async () => {
    const failed: string[] = [];
    const createFailing = async () => {
      const device = await requestDevice();
      const runner = { ...gpuRunner(device), ready: async () => {} };
      return { runner, fail: () => device.destroy() };
    };
    const subject = { ...onCpu, createFailing };
    for (const { name, run } of runnerContract(subject))
      await run().catch((error: unknown) => failed.push(`${name}: ${error}`));
    expect(failed).toEqual([
      expect.stringContaining("stays failed, if it can fail: Error: ready()"),
    ]);
  });
});
