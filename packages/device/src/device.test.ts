import { describe, expect, type MockInstance, test, vi } from "vitest";
import { bind, busyKernel, copyLaunch } from "../test/kernels.js";
import { type Device, DeviceLostError, GpuError, wrapDevice } from "./index.js";
import { requestDevice } from "./node.js";
import { requestTestDevice } from "./testing.js";

describe("loss", () => {
  test("after destroy() every await rejects, pending ones too", async () => {
    const device = await requestDevice({ label: "to be lost" });
    const buffer = device.allocate(16_384);
    const encoder = device.encoder();
    encoder.launch({
      kernel: busyKernel,
      bindings: [bind(buffer, 4096, "uint32")],
      scalars: { rounds: 15_000 },
    });
    encoder.submit();
    const pending = [device.read(buffer, 0, 4), device.settled()];
    const outcomes = Promise.allSettled(pending);
    device.destroy();
    const later = await Promise.allSettled([
      device.read(buffer, 0, 4),
      device.settled(),
      device.prewarm([]),
      device.timed(() => 1),
    ]);
    const reasons = [...(await outcomes), ...later].map((o) => o.status === "rejected" && o.reason);
    expect(reasons.map((reason) => reason instanceof DeviceLostError)).toEqual(Array(6).fill(true));
    expect(String(reasons[0])).toContain('device "to be lost" was destroyed: request a new device');
    expect(await device.lost).toMatchObject({ reason: "destroyed" });
  });

  test("a device destroyed behind our back is noticed", async () => {
    const device = await requestDevice({ label: "to be lost" });
    const buffer = device.allocate(256);
    device.gpu.destroy();
    await expect(device.read(buffer, 0, 4)).rejects.toBeInstanceOf(DeviceLostError);
    await expect(device.settled()).rejects.toBeInstanceOf(DeviceLostError);
  });

  test.each([
    ["settled", (device: Device) => vi.spyOn(device.gpu.queue, "onSubmittedWorkDone")],
    ["prewarm", (device: Device) => vi.spyOn(device.gpu, "popErrorScope")],
  ] as const)("%s() names a loss of which another error is the first sign", async (name, spyOn) => {
    const device = await requestDevice({ label: "to be lost" });
    const launch = copyLaunch(device.allocate(256), device.allocate(256), 4);
    // As in Chromium, whose GPU process has ended.
    const spy = (spyOn(device) as MockInstance<() => Promise<never>>).mockImplementation(() => {
      setTimeout(() => device.gpu.destroy(), 5);
      return Promise.reject(new Error("A valid external Instance reference no longer exists."));
    });
    const work = name === "settled" ? device.settled() : device.prewarm([launch]);
    await expect(work).rejects.toBeInstanceOf(DeviceLostError);
    spy.mockRestore();
  });

  test("a new device works afterwards", async () => {
    const device = await requestDevice({ label: "the next" });
    const buffer = device.allocate(256);
    device.write(buffer, 0, new Uint32Array([42]));
    expect(new Uint32Array(await device.read(buffer, 0, 4))).toEqual(new Uint32Array([42]));
    device.destroy();
  });
});

describe("a device of one's own", () => {
  test("wrapDevice takes a GPUDevice that another part of the program made", async () => {
    const { gpu } = await requestTestDevice();
    const device = await wrapDevice(gpu, { label: "mine" });
    expect([device.gpu, device.label]).toEqual([gpu, "mine"]);
    expect(device.memory.budget).toBe(Number.POSITIVE_INFINITY);
  });

  test("tier native needs shader-f16", async () => {
    const { gpu } = await requestTestDevice({ tier: "packed" });
    await expect(wrapDevice(gpu, { tier: "native" })).rejects.toThrow('working "shader-f16"');
  });
});

test("timed() measures GPU time where there are timestamps", async () => {
  const device = await requestTestDevice();
  const buffer = device.allocate(16_384);
  const encoder = device.encoder();
  const time = async (rounds: number) => {
    const { value, milliseconds } = await device.timed(() => {
      encoder.launch({
        kernel: busyKernel,
        bindings: [bind(buffer, 4096, "uint32")],
        scalars: { rounds },
      });
      encoder.submit();
      return "value";
    });
    expect(value).toBe("value");
    return milliseconds;
  };
  await time(1);
  const [short, long] = [await time(1000), await time(100_000)];
  if (device.capabilities.hasTimestamps) {
    expect(long).toBeGreaterThan(2 * (short as number));
    // Dawn's default steps of 2^16 ns would count a kernel of 10 µs as none, or as seven.
    const nanoseconds = [short, long, await time(1), await time(1)].map(
      (ms) => (ms as number) * 1e6,
    );
    expect(nanoseconds.every((ns) => Math.round(ns) % 2 ** 16 === 0)).toBe(false);
  } else expect([short, long]).toEqual([undefined, undefined]);
  device.release(buffer);
});

test("a buffer destroyed by its owner fails the device with a typed error", async () => {
  const device = await requestDevice({ label: "to be failed" });
  const own = device.gpu.createBuffer({ size: 256, usage: 0x8c });
  const out = device.allocate(256);
  const encoder = device.encoder();
  encoder.launch(copyLaunch(own, out, 64));
  own.destroy();
  encoder.submit();
  await expect(device.read(out, 0, 4)).rejects.toBeInstanceOf(GpuError);
  device.destroy();
});

test("what is no GPUDevice is named, and options that are none", async () => {
  for (const [gpu, text] of [
    [undefined, "gpu is undefined; it must be a GPUDevice"],
    [{}, "gpu is [object Object]; it must be a GPUDevice"],
    [Promise.resolve(), "gpu is a promise: await it; it must be a GPUDevice"],
  ])
    await expect(wrapDevice(gpu as never)).rejects.toThrow(text as string);
  const { gpu } = await requestTestDevice();
  const wrapped = wrapDevice(gpu, { adapter: 0 } as never);
  await expect(wrapped).rejects.toThrow("wrapDevice(gpu, options): there is no option adapter;");
});

test("what holds no bytes is not written", async () => {
  const device = await wrapDevice((await requestTestDevice()).gpu);
  const buffer = device.allocate(16);
  for (const wrong of [[1, 2], 8, "text", undefined])
    expect(() => device.write(buffer, 0, wrong as never)).toThrow(
      /^write\(\) takes an ArrayBuffer or a view of one, and not: (Array|Number|String|Undefined)$/,
    );
  device.write(buffer, 0, new DataView(Uint32Array.of(7, 8, 9).buffer, 4, 4));
  device.write(buffer, 4, Uint32Array.of(9).buffer);
  expect([...new Uint32Array(await device.read(buffer, 0, 8))]).toEqual([8, 9]);
  device.release(buffer);
});
