import { afterAll, describe, expect, test } from "vitest";
import { bind, copyKernel, copyLaunch } from "../test/kernels.js";
import type { DType, Kernel } from "./index.js";
import { requestTestDevice, testTiers } from "./testing.js";

const lengths = [1, 2, 3, 4, 5, 63, 64, 65, 127, 255, 256, 257, 1000, 4097];
const dtypes: DType[] = ["float32", "float16", "bfloat16"];

describe.each(await testTiers())("encoder on the %s tier", async (tier) => {
  const device = await requestTestDevice({ tier });
  const x = device.allocate(4 * 4097);
  const y = device.allocate(4 * 4097);
  afterAll(() => {
    device.release(x);
    device.release(y);
  });

  test.each(dtypes)("a copy kernel keeps the bits of %s at awkward lengths", async (dtype) => {
    const width = dtype === "float32" ? 4 : 2;
    // Normal numbers in every format: a cleared and a set bit of the exponent.
    const source = new Uint16Array((4097 * width) / 2).map(
      (_, i) => ((i * 2654435761) & 0xbbff) | 0x2000,
    );
    device.write(x, 0, source);
    const encoder = device.encoder();
    const wrong: string[] = [];
    for (const length of lengths) {
      encoder.launch(copyLaunch(x, y, length, { dtype }));
      encoder.submit();
      const copied = new Uint16Array(await device.read(y, 0, length * width));
      const expected = source.subarray(0, (length * width) / 2);
      if (copied.length !== expected.length || copied.some((code, i) => code !== expected[i]))
        wrong.push(`${length}`);
    }
    expect(wrong).toEqual([]);
  });

  test("launches of one encoder run in order, with scalars of their own", async () => {
    device.write(x, 0, new Float32Array(100));
    const encoder = device.encoder();
    for (let i = 1; i <= 6; i++)
      encoder.launch(i % 2 ? copyLaunch(x, y, 100, { add: i }) : copyLaunch(y, x, 100, { add: i }));
    encoder.submit();
    const values = new Float32Array(await device.read(x, 0, 400));
    expect([...new Set(values)]).toEqual([21]);
  });

  test("two encoders that are open at once share scalar memory and do not mix it up", async () => {
    device.write(x, 0, new Float32Array(4));
    const first = device.encoder();
    const second = device.encoder();
    first.launch(copyLaunch(x, y, 4, { add: 1 }));
    second.launch(copyLaunch(y, x, 4, { add: 10 }));
    first.submit();
    second.submit();
    expect([...new Float32Array(await device.read(x, 0, 16))]).toEqual([11, 11, 11, 11]);
  });

  test("copies take their place between launches", async () => {
    device.write(x, 0, new Float32Array(4));
    const encoder = device.encoder();
    encoder.launch(copyLaunch(x, y, 4, { add: 1 }));
    encoder.copy(y, 0, x, 0, 8);
    encoder.launch(copyLaunch(x, y, 4, { add: 10 }));
    encoder.submit();
    expect([...new Float32Array(await device.read(y, 0, 16))]).toEqual([11, 11, 10, 10]);
  });

  test("more scalars than one uniform buffer holds", async () => {
    device.write(x, 0, new Float32Array(4));
    const encoder = device.encoder();
    for (let i = 0; i < 3000; i++) {
      encoder.launch(copyLaunch(x, y, 4, { add: 1 }));
      encoder.launch(copyLaunch(y, x, 4, { add: 1 }));
    }
    encoder.submit();
    expect([...new Float32Array(await device.read(x, 0, 16))]).toEqual([6000, 6000, 6000, 6000]);
  });
});

describe("what an encoder refuses", async () => {
  const device = await requestTestDevice();
  const x = device.allocate(1024);
  const y = device.allocate(1024);
  afterAll(() => {
    device.release(x);
    device.release(y);
  });
  const launchOf = (over: object) => ({ ...copyLaunch(x, y, 8), ...over });
  const scaled = (workgroups: [number, number, number]): Kernel => ({
    ...copyKernel,
    variant: workgroups.join(),
    program: (context) => ({ ...copyKernel.program(context), workgroups: () => workgroups }),
  });
  const foreign = device.gpu.createBuffer({ size: 20, usage: 0x8c });
  const plain = device.gpu.createBuffer({ size: 256, usage: 0xc });

  test.each([
    ["a missing binding", { bindings: [bind(x, 8)] }, "has 2 bindings (x, y), but got 1"],
    [
      "a dtype that the kernel does not take",
      { bindings: [bind(x, 8, "int32"), bind(y, 8, "int32")] },
      'binding "x" of kernel "copy" is int32, but takes float32, float16, bfloat16',
    ],
    ["a missing scalar", { scalars: { count: 8 } }, 'needs the scalar "add" (f32)'],
    [
      "a scalar out of range",
      { scalars: { count: 1.5, add: 0 } },
      '"count" of kernel "copy" is 1.5',
    ],
    [
      "an unaligned offset",
      { bindings: [{ ...bind(x, 8), offset: 4 }, bind(y, 8)] },
      "starts at byte 4",
    ],
    [
      "a range past the end",
      { bindings: [bind(x, 300), bind(y, 8)] },
      "has 300 elements in bytes 0 to 1200, but its buffer has 1024: bind fewer elements, or a larger buffer",
    ],
    [
      "a start past the end",
      { bindings: [{ ...bind(x, 8), offset: 4096 }, bind(y, 8)] },
      "has 8 elements in bytes 4096 to 4128, but its buffer has 1024: bind fewer",
    ],
    [
      "a foreign buffer without room for the padding",
      { bindings: [bind(foreign, 5), bind(y, 5)] },
      "create the buffer with its size rounded up to a multiple of 16",
    ],
    [
      "a buffer that is no storage",
      { bindings: [bind(plain, 8), bind(y, 8)] },
      "without GPUBufferUsage.STORAGE",
    ],
    [
      "one buffer read and written",
      { bindings: [bind(x, 8), { ...bind(x, 8), offset: 256 }] },
      'binding "y" of kernel "copy" shares a buffer with "x"',
    ],
    [
      "too many workgroups",
      { kernel: scaled([65_536, 1, 1]) },
      "asks for 65536 × 1 × 1 workgroups",
    ],
  ])("%s", (_, over, message) => {
    expect(() => device.encoder().launch(launchOf(over))).toThrow(message);
  });

  test("a launch of no workgroups is skipped, and an empty encoder submits nothing", () => {
    const before = device.counters.snapshot();
    const encoder = device.encoder();
    encoder.launch(copyLaunch(x, y, 0));
    encoder.submit();
    const { submits, dispatches, bindGroupsCreated } = device.counters.since(before);
    expect({ submits, dispatches, bindGroupsCreated }).toEqual({
      submits: 0,
      dispatches: 0,
      bindGroupsCreated: 0,
    });
  });
});
