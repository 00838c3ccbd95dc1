import { type CompileProgress, ShaderError } from "@halfstep/device";
import { requestTestDevice, testTiers } from "@halfstep/device/testing";
import { defineKernel } from "@halfstep/kernels";
import { describe, expect, test } from "vitest";
import { defineOp, Generator, rand, type Tensor } from "../index.js";
import { cpuRuntime, gpuRuntime, type Runtime } from "./runtime.js";

/** A training step with state on the host. */
function training(runtime: Runtime) {
  const generator = new Generator(3);
  const weight = runtime.variable([1, 2, 3, 4], [4], { requiresGrad: true });
  const step = (): Tensor => {
    const noise = rand(runtime, [4], { generator });
    const loss = weight.to("float16").mul(2).mul(noise.to("float16")).to("float32").sum();
    loss.backward();
    weight.assign(weight.sub((weight.grad as Tensor).mul(0.125)));
    weight.zeroGrad();
    return loss;
  };
  return { step, weight, generator };
}

describe.each(await testTiers())("prepare() on a GPU, %s", (tier) => {
  test("compiles what the first step runs, and changes nothing", async () => {
    const device = await requestTestDevice({ tier });
    const runtime = gpuRuntime(device, { provenance: "always", underflow: "always" });
    const { step, weight, generator } = training(runtime);
    const told: CompileProgress[] = [];
    const before = device.counters.snapshot();
    const { offset } = generator;
    await runtime.prepare(step, { onCompile: (progress) => told.push(progress) });
    const { pipelinesCreated, dispatches } = device.counters.since(before);
    expect(dispatches).toBe(0);
    expect(told.map(({ compiled }) => compiled)).toEqual(told.map((_, i) => i));
    expect(told.at(-1)?.total ?? 0).toBe(pipelinesCreated);
    expect(generator.offset).toBe(offset);
    expect([...(await weight.toArray())]).toEqual([1, 2, 3, 4]);
    const warm = device.counters.snapshot();
    const planned = runtime.plan(step).launches.map(({ launch }) => launch.kernel);
    const loss = await runtime.step(step);
    // The launches that observe a step are part of it.
    expect(runtime.lastPlan?.launches.map(({ launch }) => launch.kernel)).toEqual(planned);
    expect(device.counters.since(warm).pipelinesCreated).toBe(0);

    const expected = training(cpuRuntime());
    const expectedLoss = await expected.weight.runtime.step(expected.step);
    expect(await loss.item()).toBe(await expectedLoss.item());
    expect(await weight.toArray()).toEqual(await expected.weight.toArray());
  });

  test("rejects where a program does not compile, and the device goes on", async () => {
    const device = await requestTestDevice({ tier });
    const runtime = gpuRuntime(device);
    const kernel = defineKernel({
      name: "misspelt",
      bindings: [{ name: "y", access: "write" }],
      scalars: [],
      body: () => "not WGSL",
      workgroups: () => [1, 1, 1],
      reference() {},
    });
    const op = defineOp<null>({
      name: "misspelt",
      castPolicy: "none",
      shape: (inputs) => inputs,
      forward: ({ target, outputs }) => target.launch({ kernel, bindings: outputs, scalars: {} }),
      backward: "none",
    });
    const x = runtime.tensor([1]);
    await expect(runtime.prepare(() => op.apply([x], null))).rejects.toBeInstanceOf(ShaderError);
    expect(await (await runtime.step(() => x.add(1))).item()).toBe(2);
  });
});

test("prepare() on the CPU only plans; it refuses promises, and steps that are open", async () => {
  const runtime = cpuRuntime();
  const { step } = training(runtime);
  await runtime.prepare(step);
  await expect(runtime.prepare((async () => {}) as never)).rejects.toThrow(TypeError);
  const inside = await runtime.step(() => ({ refused: runtime.prepare(step).catch(String) }));
  expect(await inside.refused).toMatch(/^RecordingError: prepare\(\) inside a step/);
});
