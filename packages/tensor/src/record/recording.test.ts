import { elementwise, identity } from "@halfstep/kernels";
import { expect, test } from "vitest";
import { cpuRuntime, type Operand } from "../index.js";

const names = (runtime: ReturnType<typeof cpuRuntime>): string[] =>
  (runtime.lastPlan?.launches ?? []).map(({ launch }) => launch.kernel.name);

test("scratch that is read before it is written holds zeros, whatever lay in its slot", async () => {
  const runtime = cpuRuntime();
  const y = await runtime.step(() => {
    // The lifetime of the first result ends before that of the scratch begins: they share a slot.
    const sum = runtime.tensor(new Float32Array(64).fill(9)).add(1).sum();
    const buffer = runtime.recorder.scratchTarget.allocate(256);
    const scratch: Operand = { buffer, offset: 0, length: 64, dtype: "float32", shape: [64] };
    const out = runtime.recorder.result([64], "float32");
    runtime.target.launch(elementwise(identity, [scratch], out.operand()));
    return out.add(sum);
  });
  expect(names(runtime)).toContain("fill");
  expect(new Set(await y.toArray())).toEqual(new Set([640]));
});

test("scratch that is written first is not cleared", async () => {
  const runtime = cpuRuntime();
  await runtime.step(() => runtime.tensor(new Float32Array(100_000)).sum());
  expect(names(runtime)).not.toContain("fill");
});

test("a variable remembers the last write to each part from earlier steps, and none of a step that threw", async () => {
  const runtime = cpuRuntime();
  const both = runtime.variable([1, 2, 3, 4], [4]);
  const { storage } = both;
  const half = runtime.variableAt({ storage, offset: 0 }, [2], "float32", "half");
  const value = runtime.tensor([5, 6]);
  const write = (): void => {
    for (let i = 0; i < 3; i++) half.assign(value);
    both.assign(both.add(1));
  };
  for (let i = 0; i < 3; i++) await runtime.step(write);
  // The writes of the last step, and one to each part from the steps before.
  expect(storage.writes.length).toBe(6);
  const { writes, version } = storage;
  const failing = runtime.step(() => {
    write();
    throw new RangeError("no step");
  });
  await expect(failing).rejects.toThrow("no step");
  expect([storage.writes, storage.version]).toEqual([writes, version]);
  await runtime.step(() => half.assign(value));
  expect([storage.writes.length, storage.version === version]).toEqual([3, false]);
  expect([...(await both.toArray())]).toEqual([5, 6, 6, 7]);
});
