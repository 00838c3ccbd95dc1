import { afterAll, describe, expect, test } from "vitest";
import { copyLaunch } from "../test/kernels.js";
import type { PreparedPass } from "./index.js";
import { requestTestDevice, testTiers } from "./testing.js";

describe.each(await testTiers())("prepared passes on the %s tier", async (tier) => {
  const device = await requestTestDevice({ tier });
  const x = device.allocate(4000);
  const y = device.allocate(4000);
  afterAll(() => {
    device.release(x);
    device.release(y);
  });
  const run = (prepared: PreparedPass, from?: number, to?: number): void => {
    const commands = device.gpu.createCommandEncoder();
    const pass = commands.beginComputePass();
    prepared.encode(pass, from, to);
    pass.end();
    device.submit([commands.finish()]);
  };
  const firstOf = async (buffer: GPUBuffer): Promise<number | undefined> =>
    new Float32Array(await device.read(buffer, 0, 4))[0];

  test("a replay creates nothing, writes nothing and waits for nothing", async () => {
    device.write(x, 0, new Float32Array(1000));
    const prepared = device.prepare([
      copyLaunch(x, y, 1000, { add: 1 }),
      copyLaunch(y, x, 1000, { add: 2 }),
    ]);
    run(prepared);
    const before = device.counters.snapshot();
    for (let i = 0; i < 10; i++) run(prepared);
    expect(device.counters.since(before)).toEqual({
      submits: 10,
      dispatches: 20,
      buffersCreated: 0,
      bindGroupsCreated: 0,
      pipelinesCreated: 0,
      writes: 0,
      reads: 0,
      hostWaits: 0,
      backpressureWaits: 0,
      exchangeWaits: 0,
    });
    expect(await firstOf(x)).toBe(33);
    prepared.destroy();
  });

  test("scalars of several launches change with one write, in order with submits", async () => {
    device.write(x, 0, new Float32Array(4));
    const prepared = device.prepare([
      copyLaunch(x, y, 4, { add: 1 }),
      copyLaunch(y, x, 4, { add: 1 }),
      copyLaunch(x, y, 4, { add: 1 }),
    ]);
    run(prepared);
    const before = device.counters.snapshot();
    prepared.updateScalars(
      new Map([
        [0, { add: 10 }],
        [2, { add: 100 }],
      ]),
    );
    expect(device.counters.since(before).writes).toBe(1);
    run(prepared);
    expect(await firstOf(y)).toBe(2 + 10 + 1 + 100);
    prepared.destroy();
  });

  test("a part can be encoded alone", async () => {
    device.write(x, 0, new Float32Array(4));
    device.write(y, 0, new Float32Array(4));
    const prepared = device.prepare([
      copyLaunch(x, y, 4, { add: 1 }),
      copyLaunch(y, x, 4, { add: 1 }),
    ]);
    run(prepared, 1);
    expect(await firstOf(x)).toBe(1);
    run(prepared, 0, 1);
    expect([await firstOf(y), prepared.length]).toEqual([2, 2]);
    prepared.destroy();
  });

  test("a count that changes what is launched changes the workgroups", async () => {
    device.write(x, 0, new Float32Array(1000).fill(5));
    device.write(y, 0, new Float32Array(1000));
    const launch = copyLaunch(x, y, 1000);
    const prepared = device.prepare([{ ...launch, scalars: { count: 0, add: 0 } }]);
    run(prepared);
    expect(await firstOf(y)).toBe(0);
    prepared.updateScalars(new Map([[0, { count: 1000 }]]));
    run(prepared);
    const values = new Float32Array(await device.read(y, 0, 4000));
    expect([...new Set(values)]).toEqual([5]);
    prepared.destroy();
  });

  test("passes over the same buffers share pipelines, and an unknown launch is named", () => {
    const before = device.counters.snapshot();
    const prepared = device.prepare([copyLaunch(x, y, 16)]);
    expect(device.counters.since(before).pipelinesCreated).toBe(0);
    expect(() => prepared.updateScalars(new Map([[1, { add: 1 }]]))).toThrow(
      "there is no launch 1",
    );
    expect(() => prepared.encode(undefined as never, 0, 9)).toThrow(
      new RangeError("there are no launches 0 to 9: this pass has 1"),
    );
    expect(() => prepared.updateScalars(new Map([[0, { ad: 1 }]]))).toThrow(
      new TypeError('kernel "copy" has no scalar "ad": it has count, add'),
    );
    prepared.destroy();
  });
});
