import { requestTestDevice, testTiers } from "@halfstep/device/testing";
import { bfloat16, float16, lostUpdates } from "@halfstep/formats";
import { cpuTarget, deviceTarget } from "@halfstep/kernels";
import { describe, expect, it } from "vitest";
import {
  AdamW,
  ExponentialMovingAverage,
  LAMB,
  LARC,
  LostUpdateMeter,
  type ParameterStorage,
  SGD,
} from "../src/index.js";
import { type AnyTarget, noise, Parameters, split, targets, total } from "./targets.js";

type DType = "float32" | "float16" | "bfloat16";

const storages: readonly (readonly [DType, ParameterStorage])[] = [
  ["float32", "float32"],
  ["float16", "master"],
  ["float16", "kahan"],
  ["float16", "plain"],
  ["bfloat16", "remainder"],
  ["bfloat16", "kahan"],
  ["bfloat16", "stochastic"],
  ["bfloat16", "plain"],
];

const formats = { float16, bfloat16 } as const;

const start = (seed: number): number[] => noise(total, seed).map((v) => Math.round(v * 127) / 128);

describe.each(await targets())("a lost-update meter on the %s", (_, make) => {
  it.each(storages)(
    "looks at steps of %s parameters kept as %s and changes no bit of them",
    async (dtype, storage) => {
      const target = await make();
      const flag = { buffer: target.allocate(4), offset: 0, length: 1, dtype: "float32" } as const;
      const results: string[] = [];
      for (const isMetered of [false, true]) {
        const parameters = new Parameters(target, start(1), dtype);
        const optimizer = new SGD(target, parameters.flat, { lr: 0.01, storage, seed: 3 });
        const meter = isMetered ? new LostUpdateMeter(optimizer) : undefined;
        for (let step = 0; step < 4; step++) {
          const skips = step === 1;
          target.write(flag, [Number(skips)]);
          parameters.setGradients(noise(total, step).fill(Number.NaN, 0, skips ? total : 0));
          optimizer.step({ foundInf: flag.buffer });
        }
        results.push(JSON.stringify([await parameters.values(), await optimizer.stateDict()]));
        const report = await meter?.read();
        if (report) {
          expect(report.steps).toBe(4);
          expect(report.total.updates).toBe(3 * total);
          expect(report.tensors.map((tensor) => tensor.storage)).toEqual([
            storage,
            storage,
            storage,
          ]);
          expect(report.total.lost).toBeGreaterThan(0.005);
          expect(report.remedy !== undefined).toBe(storage === "plain");
        }
      }
      expect(results[1]).toBe(results[0]);
    },
  );

  it("counts what formats counts", async () => {
    const target = await make();
    const wrong: string[] = [];
    for (const [dtype, storage] of [
      ["float16", "plain"],
      ["bfloat16", "plain"],
      ["float32", "float32"],
    ] as const) {
      const parameters = new Parameters(target, start(2), dtype);
      // On a grid: float32 holds each sum of a parameter and its update.
      const gradients = noise(total, 5).map((g) => Math.round(g * 2 ** 10));
      const optimizer = new SGD(target, parameters.flat, { lr: 2 ** -20, storage });
      const meter = new LostUpdateMeter(optimizer, { format: "bfloat16" });
      parameters.setGradients(gradients);
      optimizer.step();
      const { tensors, total: all } = await meter.read();
      const format = dtype === "float32" ? "bfloat16" : dtype;
      const [weights, updates] = [split(start(2)), split(gradients.map((g) => -g * 2 ** -20))];
      for (const [i, got] of tensors.entries()) {
        const want = lostUpdates(weights[i] ?? [], updates[i] ?? [], formats[format]);
        const error = (["updates", "lost", "partial", "meanRelativeError"] as const).map((name) =>
          Math.abs(got[name] - want[name]),
        );
        if (got.format !== format || Math.max(...error) > 2e-5)
          wrong.push(
            `${dtype} ${got.name}: ${JSON.stringify(got)} instead of ${JSON.stringify(want)}`,
          );
      }
      expect(all.updates).toBeGreaterThan(80);
      expect(all.lost).toBeGreaterThan(0.1);
    }
    expect(wrong).toEqual([]);
  });
});

describe("a lost-update meter", () => {
  it("names the share and the remedy, and where a storage rescues them, only the share", async () => {
    const target = cpuTarget() as AnyTarget;
    const report = async (dtype: DType, storage: ParameterStorage) => {
      const parameters = new Parameters(target, noise(total, 1).fill(1), dtype);
      const optimizer = new SGD(target, parameters.flat, { lr: 2 ** -13, storage });
      const meter = new LostUpdateMeter(new LARC(optimizer));
      parameters.setGradients(noise(total, 1).fill(-1));
      for (let step = 0; step < 3; step++) optimizer.step();
      return meter.read();
    };
    const plain = await report("float16", "plain");
    expect(plain.total).toEqual({
      updates: 3 * total,
      lost: 1,
      partial: 0,
      overflowed: 0,
      meanRelativeError: 1,
    });
    expect(plain.remedy).toBe(
      '100 % of the updates of weight round away, because its float16 values have no masters: make the optimizer with storage: "master" (4 bytes a parameter) or "kahan" (2 bytes)',
    );
    expect((await report("bfloat16", "plain")).remedy).toContain('"stochastic" (none)');
    const master = await report("float16", "master");
    expect(master.total.lost).toBe(1);
    expect(master.remedy).toBeUndefined();
  });

  it("looks at one step in so many, until it is stopped, at rules of any number of passes", async () => {
    const target = cpuTarget() as AnyTarget;
    const parameters = new Parameters(target, start(1), "bfloat16");
    const optimizer = new LAMB(target, parameters.flat, { lr: 1e-4, storage: "plain" });
    const meter = new LostUpdateMeter(optimizer, { every: 3 });
    expect(() => new LostUpdateMeter(optimizer)).toThrow("has a meter already");
    parameters.setGradients(noise(total, 2));
    for (let step = 0; step < 7; step++) optimizer.step();
    const report = await meter.read();
    expect([report.steps, report.total.updates]).toEqual([3, 3 * total]);
    meter.stop();
    optimizer.step();
    expect(await meter.read()).toEqual(report);
    expect((await new LostUpdateMeter(optimizer).read()).tensors).toEqual([]);
    expect(() => new LostUpdateMeter(optimizer, { every: 0 })).toThrow("every is 0");
  });
});

describe.each(await testTiers())("averages and meters on the GPU, %s tier", (tier) => {
  it("wait for nothing, and in steady state create nothing", async () => {
    const device = await requestTestDevice({ tier });
    const target = deviceTarget(device);
    const parameters = new Parameters(target as AnyTarget, start(1), "bfloat16");
    const optimizer = new AdamW(target as AnyTarget, parameters.flat, { storage: "plain" });
    const ema = new ExponentialMovingAverage(optimizer);
    new LostUpdateMeter(optimizer, { every: 2 });
    parameters.setGradients(noise(total, 2));
    const step = (): void => {
      optimizer.step();
      ema.update();
      target.submit();
    };
    for (let i = 0; i < 4; i++) step();
    const before = device.counters.snapshot();
    for (let i = 0; i < 20; i++) step();
    // Control and AdamW, control and average; in every second step copy, copy and count.
    expect(device.counters.since(before)).toMatchObject({
      hostWaits: 0,
      backpressureWaits: 0,
      submits: 20,
      dispatches: 20 * (4 + 3 / 2),
      buffersCreated: 0,
      bindGroupsCreated: 0,
      pipelinesCreated: 0,
    });
    await device.settled();
  });
});
