import { existsSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { copyKernel, copyLaunch } from "../test/kernels.js";
import { BindGroupCache } from "./bind-groups.js";
import { Counters } from "./counters.js";
import { BufferUsage } from "./flags.js";
import { type Device, type Program, type ProgramContext, wrapDevice } from "./index.js";
import { requestDevice } from "./node.js";
import { requestTestDevice } from "./testing.js";

/** Memory maps of this process; 0 where the system does not tell. */
const mapCount = (): number =>
  existsSync("/proc/self/maps") ? readFileSync("/proc/self/maps", "utf8").split("\n").length : 0;

const open = async (): Promise<Device> => wrapDevice((await requestTestDevice()).gpu);

test("equal ranges and layouts share a bind group; another range or buffer has its own", async () => {
  const device = await open();
  const [x, y, z] = [device.allocate(256), device.allocate(256), device.allocate(256)];
  const created = (...counts: [GPUBuffer, GPUBuffer, number][]): number => {
    const before = device.counters.snapshot();
    for (const [from, to, count] of counts) {
      const encoder = device.encoder();
      encoder.launch(copyLaunch(from, to, count));
      encoder.submit();
    }
    return device.counters.since(before).bindGroupsCreated;
  };
  expect(created([x, y, 64], [x, y, 64])).toBe(1);
  // 61 elements are bound as 64.
  expect(created([x, y, 61])).toBe(0);
  expect(created([x, y, 8], [x, z, 64], [z, x, 64])).toBe(3);
  await device.settled();
});

test("an empty binding may lie at the end of its buffer, of which nothing is accessed", async () => {
  const device = await open();
  const usage = BufferUsage.storage | BufferUsage.copySource | BufferUsage.copyTarget;
  const [x, y] = [1, 2].map(() => device.gpu.createBuffer({ size: 512, usage })) as [
    GPUBuffer,
    GPUBuffer,
  ];
  device.write(y, 0, new Float32Array(128).fill(3));
  // A launch without workgroups would bind nothing.
  const { bindings, ...copy } = {
    ...copyLaunch(x, y, 0),
    kernel: {
      ...copyKernel,
      program: (context: ProgramContext): Program => ({
        ...copyKernel.program(context),
        workgroups: () => [1, 1, 1],
      }),
    },
  };
  const atEnd = bindings.map((binding) => ({ ...binding, offset: 512 }));
  const encoder = device.encoder();
  encoder.launch({ ...copy, bindings: atEnd });
  encoder.submit();
  expect(new Float32Array(await device.read(y, 0, 512))).toEqual(new Float32Array(128).fill(3));
  const beyond = bindings.map((binding) => ({ ...binding, offset: 768 }));
  expect(() => device.encoder().launch({ ...copy, bindings: beyond })).toThrow(
    "has 0 elements in bytes 768 to 768, but its buffer has 512",
  );
  await device.settled();
});

test("the bind groups of a destroyed buffer go with it", async () => {
  const device = await open();
  const run = async (): Promise<number | undefined> => {
    const [x, y] = [device.allocate(256), device.allocate(256)];
    device.write(x, 0, new Float32Array(64).fill(3));
    const encoder = device.encoder();
    encoder.launch(copyLaunch(x, y, 64));
    encoder.submit();
    const [value] = new Float32Array(await device.read(y, 0, 4));
    device.release(x);
    device.release(y);
    return value;
  };
  expect(await run()).toBe(3);
  device.trim();
  const before = device.counters.snapshot();
  expect(await run()).toBe(3);
  expect(device.counters.since(before)).toMatchObject({ buffersCreated: 2, bindGroupsCreated: 1 });
  device.trim();
});

test("a device that is destroyed gives back at once what the driver has for it", async () => {
  const before = mapCount();
  const device = await requestDevice({ label: "to be destroyed" });
  const buffers = Array.from({ length: 500 }, () => device.allocate(256));
  const encoder = device.encoder();
  for (const [i, buffer] of buffers.slice(1).entries())
    encoder.launch(copyLaunch(buffers[i] as GPUBuffer, buffer, 64));
  encoder.submit();
  await device.settled();
  device.destroy();
  await device.lost;
  expect(mapCount() - before).toBeLessThan(250);
});

test("groups that were dropped are collected before there are too many of them", async () => {
  const device = await open();
  const [x, y] = [device.allocate(2 ** 21), device.allocate(256)];
  const scalars = device.gpu.createBuffer({ size: 256, usage: BufferUsage.uniform });
  const { kernel, bindings } = copyLaunch(x, y, 4);
  const compiled = device.pipelineFor(kernel, bindings);
  const cache = new BindGroupCache(device.gpu, new Counters());
  const maps = mapCount();
  let collected = 0;
  let most = 0;
  const registry = new FinalizationRegistry(() => {
    collected++;
  });
  const [from, to] = bindings as [(typeof bindings)[0], (typeof bindings)[0]];
  for (let i = 0; i < 45_000; i++) {
    const place = { ...from, offset: (i % 8000) * 256, length: 4 + 4 * Math.floor(i / 8000) };
    registry.register(cache.get(compiled, [place, to], { buffer: scalars, offset: 0 }), undefined);
    if (i % 500 > 0) continue;
    await new Promise((resolve) => setTimeout(resolve));
    most = Math.max(most, i + 1 - collected);
  }
  // 8192 are kept, and 64 MiB of 8 KiB each may wait for the collector. Without their weight there were 31,000 to 34,000.
  expect(most).toBeLessThan(20_000);
  // On a software adapter each is a mapping, which serves another group after it was collected. Without submits there were 45,000.
  expect(mapCount() - maps).toBeLessThan(22_000);
  await device.settled();
  scalars.destroy();
  device.release(x);
  device.release(y);
});
