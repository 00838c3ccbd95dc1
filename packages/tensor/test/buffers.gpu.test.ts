import { requestTestDevice } from "@halfstep/device/testing";
import { expect, test } from "vitest";
import { ArgumentError, cpuRuntime, gpuRuntime, RecordingError, ShapeError } from "../src/index.js";

// Buffers shared between the library and its caller without a copy.

// WebGPU's flags are global in browsers only.
const usage = { mapRead: 1, copySource: 4, copyTarget: 8, storage: 128 };

async function readRaw(gpu: GPUDevice, buffer: GPUBuffer, bytes: number): Promise<Float32Array> {
  const staging = gpu.createBuffer({ size: bytes, usage: usage.mapRead | usage.copyTarget });
  const commands = gpu.createCommandEncoder();
  commands.copyBufferToBuffer(buffer, 0, staging, 0, bytes);
  gpu.queue.submit([commands.finish()]);
  await staging.mapAsync(1);
  const values = new Float32Array(staging.getMappedRange().slice(0));
  staging.destroy();
  return values;
}

test("a buffer of one's own is computed on, and a result's buffer read, without copies", async () => {
  const device = await requestTestDevice();
  const runtime = gpuRuntime(device);
  const { gpu } = device;
  const own = gpu.createBuffer({
    size: 32,
    usage: usage.storage | usage.copySource | usage.copyTarget,
  });
  gpu.queue.writeBuffer(own, 0, Float32Array.of(1, 2, 3, 4, 5, 6, 7, 8));
  const x = runtime.fromBuffer(own, [2, 4], "float32");
  expect(x.buffer).toBe(own);

  const result = await runtime.step(() => x.mul(10).add(1));
  expect(runtime.lastPlan?.statistics.launches).toBe(1);
  expect(result.buffer).not.toBe(own);
  const raw = await readRaw(gpu, result.buffer, 32);
  expect([...raw]).toEqual([11, 21, 31, 41, 51, 61, 71, 81]);

  // The next step reads data written outside the library, with the same plan.
  const plan = runtime.lastPlan;
  gpu.queue.writeBuffer(own, 0, Float32Array.of(-1));
  const again = await runtime.step(() => x.mul(10).add(1));
  expect(runtime.lastPlan).toBe(plan);
  expect((await again.toArray())[0]).toBe(-9);

  // The caller keeps the buffer: disposing the tensor neither pools nor destroys it.
  const { pooled } = device.memory;
  x.dispose();
  expect(device.memory.pooled).toBe(pooled);
  expect((await readRaw(gpu, own, 32))[1]).toBe(2);
  own.destroy();
});

test("a variable's buffer can be written from outside", async () => {
  const device = await requestTestDevice();
  const runtime = gpuRuntime(device);
  const v = runtime.variable([1, 2, 3, 4], [4]);
  device.gpu.queue.writeBuffer(v.buffer, v.offset, Float32Array.of(5, 6));
  expect([...(await v.mul(2).toArray())]).toEqual([10, 12, 6, 8]);
});

test.each([
  ["float32", Float32Array.of(1, -2, 3), [3]],
  ["float32", Float32Array.of(1, -2, 3, 4, 5), [5]],
  ["float16", Uint16Array.of(0x3c00, 0xc000, 0x4200, 0x4400, 0x4500, 0x4600), [2, 3]],
] as const)("a buffer of %s may end inside a quad", async (dtype, data, shape) => {
  const device = await requestTestDevice();
  const runtime = gpuRuntime(device);
  const own = device.gpu.createBuffer({
    size: data.byteLength,
    usage: usage.storage | usage.copySource | usage.copyTarget,
  });
  device.gpu.queue.writeBuffer(own, 0, data);
  const x = runtime.fromBuffer(own, shape, dtype);
  const values = [1, -2, 3, 4, 5, 6].slice(0, data.length);
  expect([...(await x.toArray())]).toEqual(values);
  const step = () => x.mul(2).add(x.reshape([-1]).reshape(shape));
  const first = await runtime.step(step);
  expect([...(await first.toArray())]).toEqual(values.map((value) => 3 * value));
  expect(runtime.lastPlan?.statistics.launches).toBe(2);

  // A later step reads what was written in the meantime.
  const before = device.counters.snapshot();
  device.gpu.queue.writeBuffer(own, 0, data.slice().fill(data[1] as number));
  const second = await runtime.step(step);
  expect([...(await second.toArray())]).toEqual(values.map(() => -6));
  expect(device.counters.since(before).pipelinesCreated).toBe(0);
  own.destroy();
});

test("what cannot be shared says why", async () => {
  const device = await requestTestDevice();
  const runtime = gpuRuntime(device);
  const small = device.gpu.createBuffer({ size: 16, usage: usage.storage });
  expect(() => runtime.fromBuffer(small, [8], "float32")).toThrow(ShapeError);
  expect(() => runtime.fromBuffer(small, [8], "float32")).toThrow(
    /shape \[8\] of float32 needs a buffer of 32 bytes, this one has 16/,
  );
  expect(() => cpuRuntime().fromBuffer(small, [4], "float32")).toThrow(RecordingError);
  expect(() => cpuRuntime().tensor([1]).buffer).toThrow(/use gpuRuntime\(\)/);
  expect(() => runtime.tensor([1]).add(1).buffer).toThrow(/flush\(\) the runtime first/);
  const call =
    (...given: unknown[]) =>
    () =>
      (runtime.fromBuffer as (...all: unknown[]) => unknown).call(runtime, ...given);
  for (const [given, fact] of [
    [
      [small, [4], "bool"],
      /^runtime\.fromBuffer\(buffer, shape, dtype\): dtype must be a dtype \(float32, .*, not "bool"$/,
    ],
    [[small, [4], "float64"], /dtype must be a dtype .*, not "float64"$/],
    [[small, [4]], /dtype is missing; it must be a dtype \(float32, /],
    [[null, [4], "float32"], /buffer must be a GPUBuffer, not null$/],
    [[undefined, [4], "float32"], /buffer is missing; it must be a GPUBuffer$/],
    [[new Float32Array(4), [4], "float32"], /buffer must be a GPUBuffer, not an object/],
    [
      [small, [1.5], "float32"],
      /shape must be a shape: a list of whole numbers from 0 on, not \[1\.5\]$/,
    ],
    [[small, [-2], "float32"], /shape must be a shape: .*, not \[-2\]$/],
    [[small, 4, "float32"], /shape must be a shape: .*, not 4$/],
  ] as const) {
    expect(call(...given)).toThrow(ArgumentError);
    expect(call(...given)).toThrow(fact);
  }
  small.destroy();
});

test("a device that is still a promise is refused, and what to do is said", async () => {
  const promise = requestTestDevice();
  expect(() => gpuRuntime(promise as never)).toThrow(
    "gpuRuntime(device, options?): device must be a device: await requestDevice() for one, not a promise: await it",
  );
  await promise;
});
