import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DeviceLostError, GpuError, MemoryBudgetError } from "@halfstep/device";
import { requestTestDevice, testTiers } from "@halfstep/device/testing";
import { cpuRunner, cpuRuntime, gpuRunner, type Runner, runtime } from "@halfstep/tensor";
import { type RunnerSubject, runnerContract } from "@halfstep/tensor/testing";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { RunFolder } from "../../src/run-folder.js";
import type { TrainResult } from "../../src/train.js";
import { batchesPerEpoch, leftBehind, type Resumable, trainResumable } from "../resumable.js";
import { type FailingRunner, failing, type RunFailure } from "./failing-runner.js";

const subjectOn = (name: string, open: () => Runner | Promise<Runner>): RunnerSubject => ({
  name: `failing ${name}`,
  create: async () => failing(await open()).runner,
  async createFailing() {
    const { runner, lose } = failing(await open());
    return { runner, fail: lose };
  },
});

const subjects = [
  subjectOn("CPU", cpuRunner),
  ...(await testTiers()).map((tier) =>
    subjectOn(`GPU, ${tier}`, async () => gpuRunner(await requestTestDevice({ tier }))),
  ),
];

describe.each(subjects)("$name, which is not told to fail but by the contract", (subject) => {
  for (const { name, run } of runnerContract(subject)) test(name, run);
});

describe("training on a device that fails", () => {
  let parent: string;
  let expected: Readonly<Record<string, string>>;
  let runsOfWhole: number;

  const trainIn = async (name: string, how: Partial<Resumable>): Promise<TrainResult> => {
    const folder = new RunFolder(join(parent, name));
    try {
      return await trainResumable({ runtime: cpuRuntime(), folder, every: { steps: 1 }, ...how });
    } finally {
      folder.close();
    }
  };
  const stepsIn = (name: string): number =>
    Math.max(
      0,
      ...Object.keys(leftBehind(join(parent, name))).map((file) =>
        Number(/^step-(\d+)/.exec(file)?.[1] ?? 0),
      ),
    );

  beforeAll(async () => {
    parent = mkdtempSync(join(tmpdir(), "halfstep-failing-"));
    await trainIn("whole", {});
    expected = leftBehind(join(parent, "whole"));
    const counting = failing(cpuRunner());
    await trainIn("counting", { runtime: runtime(counting.runner) });
    runsOfWhole = counting.runs;
  });
  afterAll(() => rmSync(parent, { recursive: true }));

  const errors: Readonly<Record<RunFailure, new (...given: never) => Error>> = {
    lost: DeviceLostError,
    submit: GpuError,
    memory: MemoryBudgetError,
  };

  /** Trains until the device fails, and then on another one. */
  const failAndGoOn = async (
    name: string,
    plan: (device: FailingRunner) => Partial<Resumable>,
  ): Promise<unknown> => {
    const device = failing(cpuRunner());
    const error = await trainIn(name, { runtime: runtime(device.runner), ...plan(device) }).then(
      () => undefined,
      (reason: unknown) => reason,
    );
    expect((await trainIn(name, { resume: "auto" })).isAborted).toBe(false);
    expect(leftBehind(join(parent, name))).toEqual(expected);
    return error;
  };

  test.each([
    ["lost", 1],
    ["submit", 2],
    ["memory", 3],
  ] as const)(
    "ends with the cause, and goes on elsewhere with the bits of training that was not cut: %s",
    async (failure, first) => {
      const wrong: string[] = [];
      for (let run = first; run <= runsOfWhole; run += 3) {
        const error = await failAndGoOn(`${failure}-${run}`, (device) => {
          device.failAt(run, failure);
          return {};
        });
        if (!(error instanceof errors[failure])) wrong.push(`run ${run}: ${error}`);
      }
      expect(wrong).toEqual([]);
    },
  );

  test("saves nothing that a lost device computed", async () => {
    const device = failing(cpuRunner());
    const training = trainIn("nothing", {
      runtime: runtime(device.runner),
      onMicroStep: (count) => count === batchesPerEpoch + 2 && device.lose(),
    });
    await expect(training).rejects.toBeInstanceOf(DeviceLostError);
    // Three steps of the first epoch; the device is lost in the first of the second.
    expect(stepsIn("nothing")).toBe(3);
  });

  test("a read that fails ends training, which goes on elsewhere with the same bits", async () => {
    const error = await failAndGoOn("read", (device) => ({
      onMicroStep: (count) => {
        if (count === batchesPerEpoch + 2) device.failNextRead();
      },
    }));
    expect(error).toBeInstanceOf(GpuError);
  });
});
