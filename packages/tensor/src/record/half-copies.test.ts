import { autocast } from "@halfstep/autocast";
import { requestTestDevice } from "@halfstep/device/testing";
import { expect, test } from "vitest";
import { cpuRuntime, dumpPlan, gpuRuntime, type Plan, type Runtime } from "../index.js";

/** How a step's product loads its weight. */
function weightOf(plan: Plan | undefined): string {
  const product = plan?.launches.find(({ launch }) => launch.kernel.name.startsWith("matmul"));
  const { dtype, rounding } = product?.launch.bindings[1] ?? {};
  return `${dtype}${rounding ? ` through ${rounding}` : ""}`;
}

function halfStep(runtime: Runtime) {
  const weight = runtime.variable(new Float32Array(256).fill(1 / 3), [16, 16], { name: "weight" });
  return () =>
    autocast({ dtype: "float16" }, () =>
      runtime.tensor(new Float32Array(64), [4, 16]).matmul(weight),
    );
}

test("what two steps have read has a copy, and planning a step is no reading", async () => {
  const runtime = cpuRuntime();
  const step = halfStep(runtime);
  const folded = "float32 through float16";
  const found: string[] = [];
  for (let i = 0; i < 3; i++) {
    found.push(weightOf(runtime.plan(step)), weightOf(runtime.plan(step)));
    (await runtime.step(step)).dispose();
    found.push(weightOf(runtime.lastPlan));
  }
  expect(found).toEqual([
    ...[folded, folded, folded],
    ...["float16", "float16", "float16"],
    ...["float16", "float16", "float16"],
  ]);
});

test("plans for people call a copy what its values are called", async () => {
  const runtime = cpuRuntime();
  const step = halfStep(runtime);
  expect(dumpPlan(runtime.plan(step))).toContain("weight f32→f16[16×16]");
  (await runtime.step(step)).dispose();
  expect(dumpPlan(runtime.plan(step))).toContain("weight f16[16×16]");
});

test("the memory of a copy that was only planned is given back", async () => {
  const device = await requestTestDevice();
  const runtime = gpuRuntime(device);
  const step = halfStep(runtime);
  (await runtime.step(step)).dispose();
  const { live } = device.memory;
  expect(weightOf(runtime.plan(step))).toBe("float16");
  expect(device.memory.live).toBe(live);
});
