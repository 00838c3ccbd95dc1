import { afterAll, describe, expect, test } from "vitest";
import { bind, busyKernel, copyLaunch } from "../test/kernels.js";
import { paced } from "./paced.js";
import { requestTestDevice } from "./testing.js";

describe("reading and writing", async () => {
  const device = await requestTestDevice();
  const buffer = device.allocate(65_536);
  afterAll(() => device.release(buffer));

  test("any offset and any number of bytes", async () => {
    const source = new Uint8Array(4096).map((_, i) => (i * 37) & 255);
    device.write(buffer, 0, source);
    const ranges = [0, 1, 2, 3, 5, 255, 1022].flatMap((offset) =>
      [0, 1, 2, 3, 4, 7, 100, 3001].map((bytes) => [offset, bytes] as const),
    );
    const read = await Promise.all(
      ranges.map(([offset, bytes]) => device.read(buffer, offset, bytes)),
    );
    const wrong = ranges.filter(([offset, bytes], i) => {
      const got = new Uint8Array(read[i] as ArrayBuffer);
      return got.length !== bytes || got.some((value, j) => value !== source[offset + j]);
    });
    expect(wrong).toEqual([]);
  });

  test("an odd number of halves is written with a zero behind it", async () => {
    device.write(buffer, 0, new Uint16Array(8).fill(9));
    device.write(buffer, 4, new Uint16Array([1, 2, 3]));
    const words = new Uint16Array(await device.read(buffer, 0, 16));
    expect([...words]).toEqual([9, 9, 1, 2, 3, 0, 9, 9]);
  });

  test("reads of one turn share a submit, and steady reading creates no buffer", async () => {
    const readThree = () =>
      Promise.all([0, 256, 512].map((offset) => device.read(buffer, offset, 256)));
    await readThree();
    const before = device.counters.snapshot();
    for (let i = 0; i < 5; i++) await readThree();
    expect(device.counters.since(before)).toMatchObject({
      submits: 5,
      reads: 15,
      hostWaits: 15,
      buffersCreated: 0,
    });
  });

  test("a wait and a read at the same time use the buffers that each used alone", async () => {
    await device.read(buffer, 0, 256);
    await device.settled();
    const before = device.counters.snapshot();
    for (let i = 0; i < 3; i++) await Promise.all([device.settled(), device.read(buffer, 0, 256)]);
    expect(device.counters.since(before)).toMatchObject({ buffersCreated: 0 });
  });

  test("a read sees its own place in the queue, whatever comes after it in the same turn", async () => {
    const results: Promise<ArrayBuffer>[] = [];
    for (let i = 0; i < 8; i++) {
      device.write(buffer, 0, new Uint32Array([i]));
      results.push(device.read(buffer, 0, 4));
    }
    const target = device.allocate(256);
    const encoder = device.encoder();
    results.push(device.read(target, 0, 4));
    device.write(buffer, 0, new Float32Array([3.5]));
    encoder.launch(copyLaunch(buffer, target, 1));
    encoder.submit();
    results.push(device.read(target, 0, 4));
    const words = (await Promise.all(results)).map((bytes) => new Uint32Array(bytes)[0]);
    expect(words.slice(0, 8)).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
    expect(words[8]).toBe(0);
    expect(words[9]).toBe(new Uint32Array(new Float32Array([3.5]).buffer)[0]);
    device.release(target);
  });

  test("settled() waits for the work and counts on whose account", async () => {
    const encoder = device.encoder();
    const submit = (): void => {
      encoder.launch({
        kernel: busyKernel,
        bindings: [bind(buffer, 4096, "uint32")],
        scalars: { rounds: 15_000 },
      });
      encoder.submit();
    };
    const before = device.counters.snapshot();
    const wasDone: boolean[] = [];
    for (const wait of ["backpressure", "background", "background"] as const) {
      submit();
      // WebGPU's own word, asked for first and so given first: what settles sooner did not wait for the work.
      let isDone = false;
      const done = paced(device.gpu.queue.onSubmittedWorkDone()).then(() => {
        isDone = true;
      });
      await device.settled({ wait });
      wasDone.push(isDone);
      await done;
    }
    expect(wasDone).toEqual([true, true, true]);
    expect(device.counters.since(before)).toMatchObject({ hostWaits: 0, backpressureWaits: 1 });
  });

  test("what cannot be read or written is refused with the reason", async () => {
    await expect(device.read(buffer, 65_530, 10)).rejects.toThrow("wants bytes 65530 to 65540");
    const plain = device.gpu.createBuffer({ size: 256, usage: 0x88 });
    await expect(device.read(plain, 0, 4)).rejects.toThrow("COPY_SRC");
    expect(() => device.write(buffer, 2, new Uint32Array(1))).toThrow("start at a multiple of 4");
    expect(() => device.write(buffer, 65_536, new Uint32Array(1))).toThrow("end inside");
  });
});
