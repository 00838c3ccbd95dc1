import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type Device, MemoryBudgetError, sizeClass, wrapDevice } from "./index.js";
import { requestTestDevice } from "./testing.js";

test("size classes are multiples of 256, exact below 64 KiB and at most 12.5 % too large above", () => {
  void fc.assert(
    fc.property(fc.integer({ min: 0, max: 2 ** 32 }), (bytes) => {
      const size = sizeClass(bytes);
      const exact = Math.max(256, Math.ceil(bytes / 256) * 256);
      expect(size % 256).toBe(0);
      expect(size).toBeGreaterThanOrEqual(bytes);
      if (exact < 65_536) expect(size).toBe(exact);
      else expect(size / exact).toBeLessThanOrEqual(1.125);
      expect(sizeClass(size)).toBe(size);
    }),
  );
});

describe("memory", async () => {
  const shared = await requestTestDevice();
  const within = (memoryBudget?: number): Promise<Device> =>
    wrapDevice(shared.gpu, memoryBudget === undefined ? {} : { memoryBudget });

  test("released buffers are handed out again and every byte is accounted for", async () => {
    const device = await within();
    const first = device.allocate(1000);
    const second = device.allocate(100_000);
    expect(device.memory).toMatchObject({ live: 1024 + 106_496, peak: 107_520, pooled: 0 });
    device.release(first);
    device.release(second);
    expect(device.memory).toMatchObject({ live: 0, peak: 107_520, pooled: 107_520 });
    const before = device.counters.snapshot();
    expect(device.allocate(99_999)).toBe(second);
    expect(device.allocate(1024)).toBe(first);
    expect(device.counters.since(before).buffersCreated).toBe(0);
    device.release(first);
    device.memory.resetPeak();
    expect(device.memory).toMatchObject({ live: 106_496, peak: 106_496, pooled: 1024 });
    device.release(second);
    device.trim();
    expect(device.memory).toMatchObject({ live: 0, pooled: 0 });
  });

  test("a recycled buffer is cleared when asked, in order with what came before", async () => {
    const device = await within();
    const buffer = device.allocate(1024);
    device.write(buffer, 0, new Uint32Array(256).fill(7));
    const earlier = device.read(buffer, 0, 1024);
    device.release(buffer);
    expect(device.allocate(1024, { zero: true })).toBe(buffer);
    const later = device.read(buffer, 0, 1024);
    expect([...new Set(new Uint32Array(await earlier))]).toEqual([7]);
    expect([...new Set(new Uint32Array(await later))]).toEqual([0]);
    device.release(buffer);
    expect(device.encoder().allocate(1024)).toBe(buffer);
    expect(new Uint32Array(await device.read(buffer, 0, 4))[0]).toBe(0);
    device.release(buffer);
    device.trim();
  });

  test("a buffer that was released is neither read nor written", async () => {
    const device = await within();
    const buffer = device.allocate(16);
    device.release(buffer);
    await expect(device.read(buffer, 0, 4)).rejects.toThrow(
      "read() got a buffer that was released",
    );
    expect(() => device.write(buffer, 0, new Uint32Array(1))).toThrow("that was released");
    expect(device.allocate(16)).toBe(buffer);
    device.write(buffer, 0, new Uint32Array(1));
    device.release(buffer);
    device.trim();
    await device.settled();
  });

  test("what is to be read is read before its buffer is destroyed", async () => {
    const device = await within();
    const buffer = device.allocate(16);
    device.write(buffer, 0, Uint32Array.of(7));
    const read = device.read(buffer, 0, 4);
    device.release(buffer);
    device.trim();
    expect(new Uint32Array(await read)[0]).toBe(7);
  });

  test("the budget is checked before anything is allocated", async () => {
    const device = await within(4096);
    const buffer = device.allocate(3000);
    const before = device.counters.snapshot();
    let error: unknown;
    try {
      device.allocate(2048);
    } catch (thrown) {
      error = thrown;
    }
    expect(error).toBeInstanceOf(MemoryBudgetError);
    expect(error).toMatchObject({ wanted: 2048, live: 3072, budget: 4096 });
    expect(String(error)).toContain("3072 of the budget of 4096 bytes are in use");
    expect(device.counters.since(before).buffersCreated).toBe(0);
    device.release(buffer);
    // What lies in the pool makes room.
    device.release(device.allocate(4096));
    expect(device.memory.pooled).toBe(4096);
    device.trim();
  });

  test("a foreign buffer, a second release and a senseless size are refused", async () => {
    const device = await within();
    const buffer = device.allocate(16);
    device.release(buffer);
    expect(() => device.release(buffer)).toThrow("not handed out");
    expect(() => device.allocate(-1)).toThrow("whole number of bytes");
    expect(() => device.allocate(2 ** 50)).toThrow("maxBufferSize");
    device.trim();
  });
});
