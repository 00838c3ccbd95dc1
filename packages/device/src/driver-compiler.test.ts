import { describe, expect, test, vi } from "vitest";
import { bind, copyKernel } from "../test/kernels.js";
import { DriverCompiler } from "./driver-compiler.js";
import type { Device, Kernel } from "./index.js";
import { requestDevice } from "./node.js";
import { requestTestDevice } from "./testing.js";

const storage = [{ dtype: "float32" }, { dtype: "float32" }] as const;

let made = 0;
/** Kernels of programs that no other test compiles. */
const fresh = (count: number, change = (code: string): string => code): Kernel[] =>
  Array.from({ length: count }, () => {
    const number = ++made;
    return {
      ...copyKernel,
      program(context) {
        const program = copyKernel.program(context);
        return { ...program, code: `${change(program.code)}\n// fresh ${number}\n` };
      },
    };
  });

const compileAll = (device: Device, compiler: DriverCompiler, kernels: readonly Kernel[]) =>
  Promise.all(
    kernels.map((kernel) => {
      const compiled = device.pipelineFor(kernel, storage);
      return compiler.compile(compiled, compiled.pipeline);
    }),
  );

/** A device, and the GPUDevices that were opened to help it. */
async function helped(milliseconds: number, most: number) {
  const device = await requestTestDevice();
  const opened: GPUDevice[] = [];
  const open = vi.fn(async () => {
    const { gpu } = await requestDevice();
    opened.push(gpu);
    return gpu;
  });
  return {
    device,
    opened,
    open,
    compiler: new DriverCompiler(device.gpu, { most, open }, milliseconds),
  };
}

describe("programs that the driver compiles at their first dispatch", () => {
  test("are dispatched with no workgroups", async () => {
    const device = await requestTestDevice();
    const before = device.counters.snapshot();
    const dispatched = vi.spyOn(device.gpu.queue, "submit");
    await compileAll(device, new DriverCompiler(device.gpu, undefined), fresh(3));
    expect(dispatched).toHaveBeenCalledTimes(3);
    dispatched.mockRestore();
    const { submits, dispatches, buffersCreated } = device.counters.since(before);
    expect([submits, dispatches, buffersCreated]).toEqual([0, 0, 0]);
    await device.settled();
  });

  test("are shared with other devices, which do not outlive the work", async () => {
    const { device, opened, open, compiler } = await helped(0, 2);
    await compileAll(device, compiler, fresh(12));
    expect(open).toHaveBeenCalledTimes(2);
    const reasons = await Promise.all(opened.map(({ lost }) => lost));
    expect(reasons.map(({ reason }) => reason)).toEqual(["destroyed", "destroyed"]);
    await device.settled();
  });

  test("need no other device where compiling is quick", async () => {
    const { device, open, compiler } = await helped(Number.POSITIVE_INFINITY, 2);
    await compileAll(device, compiler, fresh(4));
    expect(open).not.toHaveBeenCalled();
  });

  test("are all compiled where no other device can be had, which is asked for once", async () => {
    const { device, open, compiler } = await helped(0, 1);
    open.mockRejectedValue(new Error("no more devices"));
    await compileAll(device, compiler, fresh(4));
    await compileAll(device, compiler, fresh(4));
    expect(open).toHaveBeenCalledTimes(1);
  });

  test("may refuse an empty dispatch, which fails nothing", async () => {
    const device = await requestTestDevice();
    const large = fresh(1, (code) => code.replace("x: array<vec4f>", "x: array<vec4f, 100000>"));
    await compileAll(device, new DriverCompiler(device.gpu, undefined), large);
    await device.settled();
    expect(device.failure).toBeUndefined();
  });
});

describe("compiling ahead on a software adapter", () => {
  const emptyDispatches = async (count: number): Promise<number> => {
    const device = await requestTestDevice();
    const buffer = device.allocate(256);
    const kernels = fresh(count);
    const submitted = vi.spyOn(device.gpu.queue, "submit");
    await device.prewarm(kernels.map((kernel) => ({ kernel, bindings: storage })));
    const { length } = submitted.mock.calls;
    submitted.mockRestore();
    const before = device.counters.snapshot();
    const encoder = device.encoder();
    for (const kernel of kernels)
      encoder.launch({
        kernel,
        bindings: [bind(buffer, 4), bind(device.allocate(256), 4)],
        scalars: { count: 4, add: 1 },
      });
    encoder.submit();
    await device.settled();
    expect(device.counters.since(before).pipelinesCreated).toBe(0);
    device.release(buffer);
    return length;
  };

  test("dispatches many programs, and leaves few to their first use", async () => {
    expect(await emptyDispatches(4)).toBe(4);
    expect(await emptyDispatches(3)).toBe(0);
  });
});
