import { type CompileProgress, type Device, ShaderError } from "@halfstep/device";
import { requestDevice } from "@halfstep/device/node";
import { requestTestDevice, testTiers } from "@halfstep/device/testing";
import { defineKernel } from "@halfstep/kernels";
import { afterEach, describe, expect, test, vi } from "vitest";
import {
  defineHostOp,
  defineOp,
  hostLaunch,
  type StepOptions,
  type Tensor,
  type Variable,
} from "../index.js";
import { cpuRuntime, gpuRuntime, type Runtime } from "../tensor/runtime.js";

// The first run of a plan waits for its programs without blocking, and everything after it keeps its order.

afterEach(() => {
  vi.restoreAllMocks();
});

const nothing = defineHostOp({ name: "nothing", bindings: [{ name: "x", access: "readwrite" }] });

/** Operators whose programs no other test compiles. */
let fresh = 0;
function freshOp(body?: string) {
  const number = ++fresh + Math.random();
  const kernel = defineKernel({
    name: `add a number ${number}`,
    bindings: [
      { name: "x", access: "read" },
      { name: "y", access: "write" },
    ],
    scalars: [{ name: "count", type: "u32" }],
    body: () =>
      body ??
      `@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) {
  if (id.x * 4u < s.count) { store_y(id.x, load_x(id.x) + vec4f(1)); } // ${number}
}`,
    workgroups: ({ count = 0 }) => [Math.ceil(count / 256), 1, 1],
    reference([x, y]) {
      for (let i = 0; x && y && i < x.length; i++) y[i] = (x[i] as number) + 1;
    },
  });
  const op = defineOp<null>({
    name: kernel.name,
    castPolicy: "none",
    shape: (inputs) => inputs,
    forward: ({ target, inputs, outputs }) =>
      target.launch({ kernel, bindings: [...inputs, ...outputs], scalars: { count: 4 } }),
    backward: "none",
  });
  return (x: Tensor): Tensor => op.apply([x], null) as Tensor;
}

/** Lets no program be compiled ahead until it is told to. */
function holdCompiler(device: Device): () => void {
  let release = (): void => {};
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });
  const compile = device.gpu.createComputePipelineAsync.bind(device.gpu);
  vi.spyOn(device.gpu, "createComputePipelineAsync").mockImplementation(async (descriptor) => {
    await released;
    return compile(descriptor);
  });
  return release;
}

describe.each(await testTiers())("the first step of a plan, %s", (tier) => {
  test("compiles nothing in the step's turn, tells how far it is, and waits", async () => {
    const device = await requestTestDevice({ tier });
    const runtime = gpuRuntime(device);
    const op = freshOp();
    const x = runtime.variable([1, 2, 3, 4], [4]);
    const release = holdCompiler(device);
    const compiledNow = vi.spyOn(device.gpu, "createComputePipeline");
    const told: CompileProgress[] = [];
    let isDone = false;
    const stepping = runtime.step(() => op(x), { onCompile: (progress) => told.push(progress) });
    void stepping.then(() => {
      isDone = true;
    });
    // The event loop is free.
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect(isDone).toBe(false);
    expect(told.map(({ compiled, total }) => [compiled, total])).toEqual([[0, 1]]);
    release();
    expect([...(await (await stepping).toArray())]).toEqual([2, 3, 4, 5]);
    expect(told).toHaveLength(2);
    expect(compiledNow).not.toHaveBeenCalled();
  });

  test("tells of each program once, however many segments wait for it", async () => {
    const runtime = gpuRuntime(await requestTestDevice({ tier }));
    const [first, second] = [freshOp(), freshOp()];
    const x = runtime.variable([1, 2, 3, 4], [4]);
    const told: number[] = [];
    const step = (): Tensor => {
      x.assign(first(x));
      runtime.target.launch(hostLaunch(nothing, [x.operand()], async () => {}));
      return second(x);
    };
    const result = await runtime.step(step, { onCompile: ({ compiled }) => told.push(compiled) });
    expect([...(await result.toArray())]).toEqual([3, 4, 5, 6]);
    expect(told).toEqual(Array.from(told, (_, i) => i));
    expect(told.length).toBeGreaterThanOrEqual(3);
  });

  test("keeps the order of writes, reads, releases and other recordings", async () => {
    const device = await requestTestDevice({ tier });
    const release = holdCompiler(device);
    const program = async (runtime: Runtime, op: (x: Tensor) => Tensor): Promise<number[][]> => {
      const v: Variable = runtime.variable([1, 2, 3, 4], [4]);
      const reads: ReturnType<Tensor["toArray"]>[] = [];
      const data = Float32Array.of(10, 20, 30, 40);
      v.assign(op(v));
      reads.push(v.toArray());
      runtime.target.write(v.operand(), data);
      data.fill(99);
      reads.push(v.toArray());
      v.assign(op(v).mul(2));
      const gone = v.mul(3);
      const kept = gone.add(1);
      reads.push(kept.toArray());
      gone.dispose();
      kept.dispose();
      const input = runtime.tensor(data, [4]);
      data.fill(-1);
      reads.push(input.mul(v).toArray());
      runtime.emptyCache();
      v.assign(op(v));
      reads.push(v.toArray());
      setTimeout(release, 10);
      return (await Promise.all(reads)).map((values) => [...values]);
    };
    const op = freshOp();
    const found = await program(gpuRuntime(device), op);
    expect(found).toEqual(await program(cpuRuntime(), op));
  });

  test("is followed by steps that compile nothing, as is prepare()", async () => {
    const device = await requestTestDevice({ tier });
    const runtime = gpuRuntime(device);
    const [first, other] = [freshOp(), freshOp()];
    const x = runtime.variable([1, 2, 3, 4], [4]);
    await runtime.step(() => first(x));
    await runtime.prepare(() => other(x));
    const ahead = vi.spyOn(device.gpu, "createComputePipelineAsync");
    const now = vi.spyOn(device.gpu, "createComputePipeline");
    await runtime.step(() => first(x));
    await runtime.step(() => other(x));
    expect([ahead.mock.calls.length, now.mock.calls.length]).toEqual([0, 0]);
  });
});

describe("a first step whose caller gives up", () => {
  /** Begins a step whose programs are not compiled until `release` is called. */
  const begin = async (options: (controller: AbortController) => StepOptions) => {
    const device = await requestTestDevice();
    const runtime = gpuRuntime(device);
    const x = runtime.variable([1, 2, 3, 4], [4]);
    const op = freshOp();
    const release = holdCompiler(device);
    const controller = new AbortController();
    const results: Tensor[] = [];
    const stepping = runtime.step(() => {
      x.assign(op(x));
      results.push(x.mul(2));
      return results;
    }, options(controller));
    return { device, runtime, x, release, controller, results, stepping };
  };

  /** The step has its effect when it is compiled, and others follow it. */
  const expectEffect = async ({
    device,
    runtime,
    x,
    release,
    results,
  }: Awaited<ReturnType<typeof begin>>): Promise<void> => {
    expect(results[0]?.isDisposed).toBe(true);
    setTimeout(release, 10);
    await runtime.step(() => x.assign(x.mul(10)));
    expect([...(await x.toArray())]).toEqual([20, 30, 40, 50]);
    expect(device.failure).toBe(undefined);
  };

  test("rejects with the reason of its signal", async () => {
    const begun = await begin(({ signal }) => ({ signal }));
    setTimeout(() => begun.controller.abort(new Error("enough")), 10);
    await expect(begun.stepping).rejects.toThrow("enough");
    await expectEffect(begun);
    await expect(
      begun.runtime.step(() => begun.x.assign(begun.x.mul(0)), { signal: begun.controller.signal }),
    ).rejects.toThrow("enough");
    expect([...(await begun.x.toArray())]).toEqual([20, 30, 40, 50]);
  });

  test("rejects with the error of its onCompile, which is not called again", async () => {
    let calls = 0;
    const begun = await begin(() => ({
      onCompile() {
        calls++;
        throw new Error("no more");
      },
    }));
    await expect(begun.stepping).rejects.toThrow("no more");
    await expectEffect(begun);
    expect(calls).toBe(1);
  });
});

test("a program of a step that does not compile fails the device with its error", async () => {
  const device = await requestDevice({ label: "to be failed" });
  const runtime = gpuRuntime(device);
  const x = runtime.variable([1, 2, 3, 4], [4]);
  const op = freshOp("not WGSL");
  const error = await runtime.step(() => op(x)).catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(ShaderError);
  expect(device.failure).toBe(error);
  await expect(x.toArray()).rejects.toBe(error);
  device.destroy();
});

test("a device that is destroyed meanwhile rejects the step", async () => {
  const device = await requestDevice({ label: "to be lost" });
  const runtime = gpuRuntime(device);
  const x = runtime.variable([1, 2, 3, 4], [4]);
  const op = freshOp();
  holdCompiler(device);
  const stepping = runtime.step(() => op(x));
  setTimeout(() => device.destroy(), 10);
  await expect(stepping).rejects.toThrow("was destroyed");
});
