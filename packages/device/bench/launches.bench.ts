import { bench, describe } from "vitest";
import { requestTestDevice } from "../src/testing.js";
import { copyLaunch } from "../test/kernels.js";

const device = await requestTestDevice();
const x = device.allocate(4096);
const y = device.allocate(4096);
const prepared = device.prepare(Array.from({ length: 1000 }, () => copyLaunch(x, y, 1)));

// Encodes launches without submitting them, to measure the host time of a launch.
describe("1,000 launches", () => {
  bench("replayed", () => {
    const commands = device.gpu.createCommandEncoder();
    const pass = commands.beginComputePass();
    prepared.encode(pass);
    pass.end();
    commands.finish();
  });
});

describe("read-back", () => {
  bench("4 bytes", async () => {
    await device.read(y, 0, 4);
  });
});
