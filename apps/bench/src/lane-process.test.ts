import { expect, test } from "vitest";
import { LaneProcess, limitsName, type Made, type Timed, type WarmedUp } from "./lane-process.js";
import { ours } from "./lanes/names.js";

test("a lane prepares, warms up and times what it is asked for", async () => {
  const lane = new LaneProcess();
  await lane.answer({ kind: "open", lane: ours.name, peersFolder: "none" });
  const subject = { workload: "gemm", name: "256³", precision: "float16" } as const;
  const { result } = (await lane.answer({ kind: "prepare", subject })) as Made;
  expect(result?.length).toBe(256 * 256);
  const warmUp = async (isBrief: boolean) =>
    (await lane.answer({ kind: "warmUp", subject, isBrief })) as WarmedUp;
  const warm = await warmUp(false);
  expect(warm.milliseconds).toBeGreaterThan(0);
  expect(warm.hostMicroseconds).toBeGreaterThan(0);
  expect(warm.callsPerStep.submits).toBeGreaterThanOrEqual(1);
  // Both operands, the result and its copy.
  expect(warm.peakBytes).toBeGreaterThanOrEqual(3 * 256 * 256 * 2);
  expect(warm.facts?.allocatorPeakBytes).toBeGreaterThanOrEqual(3 * 256 * 256 * 2);
  const kernels = warm.kernels ?? [];
  expect(kernels.map(({ label, dispatches }) => [label.split(" ")[0], dispatches])).toContainEqual([
    "matmul",
    1,
  ]);
  expect(kernels[0]?.milliseconds).toBeGreaterThan(0);
  const brief = await warmUp(true);
  expect(brief.callsPerStep).toEqual(warm.callsPerStep);
  // The first steps also made the few bytes with which the device is waited for.
  expect(warm.peakBytes - brief.peakBytes).toBeGreaterThanOrEqual(0);
  expect(warm.peakBytes - brief.peakBytes).toBeLessThan(64);
  const { milliseconds } = (await lane.answer({ kind: "time", subject, calls: 2 })) as Timed;
  expect(milliseconds).toBeGreaterThan(0);

  for (const name of ["copy", "fma"]) {
    const limit = { workload: limitsName, name, precision: "float32" } as const;
    await lane.answer({ kind: "prepare", subject: limit });
    const once = (await lane.answer({ kind: "time", subject: limit, calls: 1 })) as Timed;
    expect(once.milliseconds).toBeGreaterThan(0);
  }
  await lane.answer({ kind: "close" });
});

test("bytes are those of a subject, whatever else was prepared in the process", async () => {
  const lane = new LaneProcess();
  await lane.answer({ kind: "open", lane: ours.name, peersFolder: "none" });
  const subjects = (["float16", "float32"] as const).map((precision) => ({
    ...{ workload: "gemm", name: "256³", precision },
  }));
  for (const subject of subjects) await lane.answer({ kind: "prepare", subject });
  const peaks: number[] = [];
  for (const subject of subjects)
    peaks.push(
      ((await lane.answer({ kind: "warmUp", subject, isBrief: true })) as WarmedUp).peakBytes,
    );
  const [half, single] = peaks as [number, number];
  expect(half).toBeGreaterThanOrEqual(3 * 256 * 256 * 2);
  expect(single).toBeGreaterThan(1.5 * half);
  await lane.answer({ kind: "close" });
});

test("what does not exist is named", async () => {
  const lane = new LaneProcess();
  await expect(lane.answer({ kind: "open", lane: "abacus", peersFolder: "" })).rejects.toThrow(
    "there is no lane abacus",
  );
  await lane.answer({ kind: "open", lane: ours.name, peersFolder: "none" });
  const subject = { workload: "gemm", name: "7³", precision: "float32" } as const;
  await expect(lane.answer({ kind: "prepare", subject })).rejects.toThrow(
    "there is no case 7³ in workload gemm",
  );
  await expect(lane.answer({ kind: "time", subject, calls: 1 })).rejects.toThrow(
    "gemm/7³/float32 was not prepared",
  );
});
