import { describe, expect, test, vi } from "vitest";
import { copyKernel, copyLaunch } from "../test/kernels.js";
import { type CompileProgress, type Device, GpuError, type Kernel, ShaderError } from "./index.js";
import { requestDevice } from "./node.js";
import { requestTestDevice } from "./testing.js";

const storage = [{ dtype: "float32" }, { dtype: "float32" }] as const;

const broken = (code: string): Kernel => ({
  ...copyKernel,
  name: "broken",
  variant: "tile=4",
  program: (context) => ({ ...copyKernel.program(context), code }),
});
/** The copy with code of its own. */
const commented = (variant: string): Kernel => ({
  ...copyKernel,
  variant,
  program(context) {
    const program = copyKernel.program(context);
    return { ...program, code: `${program.code}\n// ${variant}\n` };
  },
});
const misspelt = broken("@compute @workgroup_size(1)\nfn main() {\n  let x: u32 = 1.5;\n}");
const enormous = broken("@compute @workgroup_size(4096)\nfn main() {}");

describe("pipelines", () => {
  test("a kernel has one for each storage", async () => {
    const device = await requestTestDevice();
    const kernel = commented("its own");
    const before = device.counters.snapshot();
    const first = device.pipelineFor(kernel, storage);
    expect(device.pipelineFor(kernel, storage)).toBe(first);
    const half = device.pipelineFor(kernel, [{ dtype: "bfloat16" }, { dtype: "bfloat16" }]);
    expect(half).not.toBe(first);
    expect(half.layoutId).toBe(first.layoutId);
    expect(device.counters.since(before).pipelinesCreated).toBe(2);
    await device.settled();
  });

  test("a kernel of the same name and another body has its own", async () => {
    const device = await requestTestDevice();
    const [one, other] = ["one", "other"].map((comment) =>
      device.pipelineFor({ ...commented(comment), variant: "" }, storage),
    );
    expect(other?.program.code).not.toBe(one?.program.code);
    expect(other?.pipeline).not.toBe(one?.pipeline);
    await device.settled();
  });

  test("kernels of equal code share a pipeline, however they are compiled", async () => {
    const device = await requestTestDevice();
    const kernel = commented("shared");
    const first = device.pipelineFor(kernel, storage);
    const before = device.counters.snapshot();
    const other = device.pipelineFor({ ...kernel, variant: "another name" }, storage);
    expect(other).not.toBe(first);
    expect(other.pipeline).toBe(first.pipeline);
    const third = { ...kernel, variant: "a third" };
    await device.prewarm([{ kernel: third, bindings: storage }]);
    expect(device.pipelineFor(third, storage).pipeline).toBe(first.pipeline);
    expect(device.counters.since(before).pipelinesCreated).toBe(0);
  });

  test("prewarming compiles ahead of time", async () => {
    const device = await requestTestDevice();
    const kernel = commented("warm");
    await device.prewarm([{ kernel, bindings: storage }]);
    const before = device.counters.snapshot();
    device.pipelineFor(kernel, storage);
    expect(device.counters.since(before).pipelinesCreated).toBe(0);
  });

  test("prewarming compiles each program once, and tells how far it is", async () => {
    const device = await requestTestDevice();
    const [one, other] = [commented("told once"), commented("told of as well")];
    const wanted = [one, { ...one, variant: "of equal code" }, one, other].map((kernel) => ({
      kernel,
      bindings: storage,
    }));
    const created = vi.spyOn(device.gpu, "createComputePipelineAsync");
    const told: CompileProgress[] = [];
    const onCompile = (progress: CompileProgress): number => told.push(progress);
    await Promise.all([
      device.prewarm(wanted, { onCompile }),
      // Another caller requests them at the same time.
      device.prewarm(wanted),
    ]);
    expect(created).toHaveBeenCalledTimes(2);
    created.mockRestore();
    expect(told).toEqual([0, 1, 2].map((compiled) => ({ compiled, total: 2, kernel: "copy" })));
    await device.prewarm(wanted, { onCompile });
    expect(told).toHaveLength(3);
  });

  test("programs of equal bindings share the layout of their bind groups, and no layout of pipelines", async () => {
    // wgpu keeps the least sizes of bindings where the next pipeline of a pass has the same layout object.
    const device = await requestTestDevice();
    const created = vi.spyOn(device.gpu, "createComputePipeline");
    const compiled = ["a layout", "another layout"].map((name) =>
      device.pipelineFor(commented(name), storage),
    );
    const layouts = created.mock.calls.map(([{ layout }]) => layout);
    created.mockRestore();
    expect(layouts).toHaveLength(2);
    expect(layouts[1]).not.toBe(layouts[0]);
    expect(compiled[1]?.layout).toBe(compiled[0]?.layout);
  });

  test("prewarming is called off between two programs", async () => {
    const device = await requestTestDevice();
    const wanted = Array.from({ length: 20 }, (_, i) => ({
      ...{ kernel: commented(`called off ${i}`), bindings: storage },
    }));
    const controller = new AbortController();
    const before = device.counters.snapshot();
    const onCompile = (): void => controller.abort(new Error("enough"));
    const warming = device.prewarm(wanted, { onCompile, signal: controller.signal });
    expect(await rejection(warming)).toMatchObject({ message: "enough" });
    expect(device.counters.since(before).pipelinesCreated).toBeLessThan(20);
    await device.prewarm(wanted);
    expect(device.counters.since(before).pipelinesCreated).toBe(20);
    expect(await rejection(device.prewarm(wanted, { signal: controller.signal }))).toMatchObject({
      message: "enough",
    });
  });

  test("prewarming a broken kernel rejects with its name, the line and the text of the line", async () => {
    const device = await requestTestDevice();
    const error = await rejection(device.prewarm([{ kernel: misspelt, bindings: storage }]));
    expect(error).toBeInstanceOf(ShaderError);
    expect(error).toMatchObject({ kernel: "broken", line: 3 });
    expect(String(error)).toContain(
      'kernel "broken tile=4" (float32, float32) does not compile: line 3:',
    );
    expect(String(error)).toContain("let x: u32 = 1.5;");
    expect(device.failure).toBeUndefined();
  });

  test.each([
    ["a typing error", misspelt, "let x: u32 = 1.5;"],
    ["a limit", enormous, "is refused"],
  ])("%s in a launched kernel fails the device at the next await", async (_, kernel, text) => {
    const device: Device = await requestDevice({ label: "to be failed" });
    const [x, y] = [device.allocate(256), device.allocate(256)];
    const encoder = device.encoder();
    encoder.launch({ ...copyLaunch(x, y, 8), kernel });
    encoder.submit();
    const error = await rejection(device.read(y, 0, 16));
    expect(error).toBeInstanceOf(ShaderError);
    expect(String(error)).toContain(text);
    expect(await rejection(device.settled())).toBe(error);
    expect(device.failure).toBe(error);
    device.destroy();
  });

  test("an error that only WebGPU sees rejects the next await", async () => {
    const device = await requestDevice({ label: "to be failed" });
    const [x, y] = [device.allocate(256), device.allocate(256)];
    const commands = device.gpu.createCommandEncoder();
    commands.copyBufferToBuffer(x, 0, y, 0, 1024);
    device.submit([commands.finish()]);
    const error = await rejection(device.settled());
    expect(error).toBeInstanceOf(GpuError);
    expect(error).toMatchObject({ kind: "validation" });
    device.destroy();
  });
});

const rejection = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => undefined,
    (reason: unknown) => reason,
  );
