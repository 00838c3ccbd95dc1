import { elementwise, identity } from "@halfstep/kernels";
import { expect, test } from "vitest";
import { cpuRuntime, type Operand } from "./index.js";

const names = (runtime: ReturnType<typeof cpuRuntime>): string[] =>
  (runtime.lastPlan?.launches ?? []).map(({ launch }) => launch.kernel.name);

test("scratch that is read before it is written holds zeros, whatever lay in its slot", async () => {
  const runtime = cpuRuntime();
  const y = await runtime.step(() => {
    // The first result has died when the scratch comes to life: they share a slot.
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
