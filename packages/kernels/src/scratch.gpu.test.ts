import { requestTestDevice } from "@halfstep/device/testing";
import { expect, test } from "vitest";
import { reduce } from "./reductions/reduce.js";
import { deviceTarget } from "./resident-target.js";

test("memory between launches returns to the pool when they are submitted", async () => {
  const device = await requestTestDevice();
  const size = 100_000;
  const binding = (length: number) => ({
    ...{ buffer: device.allocate(4 * length), offset: 0, length },
    dtype: "float32" as const,
  });
  const [input, out] = [binding(size), binding(1)];
  const target = deviceTarget(device);
  target.write(input, new Float32Array(size).fill(2));
  const { live } = device.memory;
  const encoder = device.encoder();
  for (const each of [target, encoder, target, encoder]) {
    reduce(each, { input, out }, { op: "sum", outer: 1, size, inner: 1 });
    expect(device.memory.live).toBeGreaterThan(live);
    each.submit();
    expect(device.memory.live).toBe(live);
    expect([...(await target.read(out))]).toEqual([2 * size]);
  }
  // Without launches, too.
  encoder.scratch(1024);
  encoder.submit();
  expect(device.memory.live).toBe(live);
});
