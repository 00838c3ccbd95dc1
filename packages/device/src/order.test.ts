import { describe, expect, test } from "vitest";
import { copyKernel, copyLaunch } from "../test/kernels.js";
import { DeviceLostError, type Kernel, ShaderError } from "./index.js";
import { requestDevice } from "./node.js";
import { requestTestDevice, testTiers } from "./testing.js";

/** A promise that the test resolves. */
function held() {
  let release = (): void => {};
  const ready = new Promise<void>((resolve) => {
    release = resolve;
  });
  return { ready, release };
}

describe.each(await testTiers())(
  "while programs are being compiled, on the %s tier",
  async (tier) => {
    const device = await requestTestDevice({ tier });
    const first = async (buffer: GPUBuffer): Promise<number | undefined> =>
      new Float32Array(await device.read(buffer, 0, 4))[0];

    test("runs, writes, reads and encoders keep their order", async () => {
      const [x, y] = [device.allocate(256), device.allocate(256)];
      const values = Float32Array.of(1, 1, 1, 1);
      device.write(x, 0, values);
      const { ready, release } = held();
      const pass = device.prepare([copyLaunch(x, y, 4, { add: 10 })]);
      const run = (): void => {
        const commands = device.gpu.createCommandEncoder();
        const encoder = commands.beginComputePass();
        pass.encode(encoder);
        encoder.end();
        device.submit([commands.finish()]);
      };
      const before = device.counters.snapshot();
      device.enqueue(run, ready);
      values.fill(2);
      device.write(x, 0, values);
      values.fill(77);
      const afterFirst = first(y);
      pass.updateScalars(new Map([[0, { add: 20 }]]));
      device.enqueue(run, pass.compile());
      const afterSecond = first(y);
      const encoder = device.encoder();
      encoder.launch(copyLaunch(y, x, 4, { add: 100 }));
      encoder.submit();
      const afterThird = first(x);
      // Nothing was submitted, and no read can be done.
      const early = await Promise.race([
        afterFirst,
        new Promise((wait) => setTimeout(wait, 20, "?")),
      ]);
      expect(early).toBe("?");
      expect(device.counters.since(before).submits).toBe(0);
      release();
      await device.submitted();
      expect(await Promise.all([afterFirst, afterSecond, afterThird])).toEqual([11, 22, 122]);
      pass.destroy();
      device.release(x);
      device.release(y);
    });

    test("released, trimmed and recycled memory is used in order", async () => {
      device.trim();
      const [x, y] = [device.allocate(4096), device.allocate(4096)];
      device.write(x, 0, Float32Array.of(3));
      const { ready, release } = held();
      const pass = device.prepare([copyLaunch(x, y, 4, { add: 1 })]);
      await pass.compile();
      device.enqueue(() => {
        const commands = device.gpu.createCommandEncoder();
        const encoder = commands.beginComputePass();
        pass.encode(encoder);
        encoder.end();
        device.submit([commands.finish()]);
      }, ready);
      const result = first(y);
      pass.destroy();
      device.release(x);
      const recycled = device.allocate(4096, { zero: true });
      expect(recycled).toBe(x);
      const zero = first(recycled);
      device.release(recycled);
      device.release(y);
      device.trim();
      release();
      expect([await result, await zero]).toEqual([4, 0]);
      await device.settled();
    });
  },
);

test("destroying a device ends all waits", async () => {
  const device = await requestDevice({ label: "to be lost" });
  const buffer = device.allocate(256);
  device.enqueue(() => expect.unreachable(), held().ready);
  const outcomes = Promise.allSettled([device.read(buffer, 0, 4), device.settled()]);
  const submitted = device.submitted();
  device.destroy();
  for (const outcome of await outcomes)
    expect(outcome).toMatchObject({ reason: expect.any(DeviceLostError) });
  await submitted;
});

test("a prepared pass compiles its programs ahead, and says what does not compile", async () => {
  const device = await requestTestDevice();
  const [x, y] = [device.allocate(256), device.allocate(256)];
  const withCode = (change: (code: string) => string): Kernel => ({
    ...copyKernel,
    program(context) {
      const program = copyKernel.program(context);
      return { ...program, code: change(program.code) };
    },
  });
  const kernel = withCode((code) => `${code}\n// ahead`);
  const pass = device.prepare([{ ...copyLaunch(x, y, 4), kernel }]);
  const before = device.counters.snapshot();
  await pass.compile();
  expect(device.counters.since(before).pipelinesCreated).toBe(1);
  expect(pass.compile()).toBeUndefined();
  pass.destroy();
  const misspelt = withCode((code) => code.replace("let i", "lte i"));
  const broken = device.prepare([{ ...copyLaunch(x, y, 4), kernel: misspelt }]);
  await expect(broken.compile()).rejects.toBeInstanceOf(ShaderError);
  broken.destroy();
  device.release(x);
  device.release(y);
});
