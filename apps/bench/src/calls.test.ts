import { requestDevice } from "@halfstep/device/node";
import { expect, test } from "vitest";
import { CallMeter, callsPerStep } from "./calls.js";
import { halfstepLibrary } from "./lanes/halfstep.js";
import { gemm } from "./workloads/gemm.js";
import { mlpCase } from "./workloads/mlp.js";

const meter = new CallMeter();
const probe = await requestDevice();
meter.install(probe.gpu);

test("raw calls are counted once each, and bytes until they are destroyed", () => {
  const before = meter.snapshot();
  const live = meter.liveBytes;
  const buffer = probe.gpu.createBuffer({ size: 1024, usage: GPUBufferUsage.COPY_DST });
  probe.gpu.queue.writeBuffer(buffer, 0, new Float32Array(4));
  const commands = probe.gpu.createCommandEncoder();
  commands.clearBuffer(buffer);
  probe.gpu.queue.submit([commands.finish()]);
  expect(meter.liveBytes - live).toBe(1024);
  buffer.destroy();
  buffer.destroy();
  expect(meter.liveBytes).toBe(live);
  expect(callsPerStep(before, meter.snapshot(), 1)).toEqual({
    submits: 1,
    dispatches: 0,
    buffers: 1,
    bindGroups: 0,
    pipelines: 0,
    writes: 1,
    maps: 0,
  });
});

test("our training step in steady state: one submit, and nothing created", async () => {
  const chosen = mlpCase("small", { sizes: [32, 16, 10], batch: 8 }, true);
  const prepared = await chosen.on.halfstep?.(
    halfstepLibrary(() => {}),
    "float16",
  );
  if (!prepared) throw new Error("our lane has no MLP");
  const losses = await prepared.result();
  expect(losses[4]).toBeLessThan(losses[0] as number);
  // The first turns make the staging buffers of waits.
  for (let i = 0; i < 4; i++) await prepared.run();
  const before = meter.snapshot();
  for (let i = 0; i < 4; i++) await prepared.run();
  const { dispatches, ...calls } = callsPerStep(before, meter.snapshot(), 4);
  expect(dispatches).toBeGreaterThan(5);
  expect(calls).toMatchObject({ submits: 1, buffers: 0, bindGroups: 0, pipelines: 0 });
  expect(prepared.facts?.().allocatorPeakBytes).toBeGreaterThan(0);
  prepared.dispose?.();
});

test("an op's result is what its definition says", async () => {
  const [smallest] = gemm.cases;
  const prepared = await smallest?.on.halfstep?.(
    halfstepLibrary(() => {}),
    "float32",
  );
  const result = await prepared?.result();
  const places = [0, 257, 65_535];
  for (const place of places)
    expect(result?.[place]).toBeCloseTo(smallest?.expected?.(place) as number, 4);
  prepared?.dispose?.();
});
