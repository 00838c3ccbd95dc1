import { requestTestDevice } from "@halfstep/device/testing";
import { DigitsCnn, Mlp } from "@halfstep/models";
import { argmax, cpuRuntime, gpuRuntime, type Runtime, type Tensor } from "@halfstep/tensor";
import { describe, expect, it } from "vitest";
import { Predictor, type PredictorOptions, type Row } from "./predictor.js";

const features = 64;
const network = (runtime: Runtime): Mlp =>
  new Mlp(runtime, { sizes: [features, 256, 10], seed: 3 });

type Sample = Float32Array;
const samplesOf = (count: number): Sample[] =>
  Array.from({ length: count }, (_, i) =>
    Float32Array.from({ length: features }, (_, j) => Math.sin(1 + i * 7.1 + j * 1.3)),
  );

const batchOf = (runtime: Runtime, samples: readonly Sample[]): Tensor =>
  runtime.tensor(Float32Array.from(samples.flatMap((sample) => [...sample])), [
    samples.length,
    features,
  ]);

function predictorOf(
  runtime: Runtime,
  options: Partial<PredictorOptions<Sample, Tensor, Row>> = {},
) {
  const model = network(runtime);
  const sizes: number[] = [];
  const predictor = new Predictor<Sample>({
    ...{ runtime, model, batchSize: 4 },
    forward: (samples) => {
      sizes.push(samples.length);
      return model.forward(batchOf(runtime, samples));
    },
    ...options,
  });
  return { predictor, model, sizes };
}

const closeTo = (a: readonly Row[], b: readonly Row[]): number =>
  Math.max(...a.flatMap((row, i) => [...row].map((v, j) => Math.abs(v - (b[i]?.[j] as number)))));

describe("Predictor", () => {
  it("gives each sample its row, whatever the batches, in evaluation mode and without gradients", async () => {
    const runtime = cpuRuntime();
    const { predictor, model, sizes } = predictorOf(runtime);
    const samples = samplesOf(10);
    const rows = await predictor.predict(samples);
    expect(sizes).toEqual([4, 4, 2]);
    expect(rows.map(({ length }) => length)).toEqual(Array(10).fill(10));
    const alone = await predictorOf(runtime, { batchSize: 1 }).predictor.predict(samples);
    expect(closeTo(rows, alone)).toBeLessThan(1e-6);
    expect(model.isTraining).toBe(true);
    expect(await predictor.predict([])).toEqual([]);
    expect(await predictor.usage()).toMatchObject({
      ...{ samples: 10, batches: 3, deviceMsPerBatch: undefined, peakBytes: 0 },
      parameterBytes: 4 * (features * 256 + 256 + 256 * 10 + 10),
    });
  });

  it("takes samples that are on their way, and several outputs that are read as one wants", async () => {
    const runtime = cpuRuntime();
    const model = network(runtime);
    const modes: boolean[] = [];
    const predictor = new Predictor({
      ...{ runtime, model, batchSize: 3 },
      forward: (samples: readonly Sample[]) => {
        modes.push(model.isTraining);
        const logits = model.forward(batchOf(runtime, samples));
        return { label: argmax(logits, -1), largest: logits.square() };
      },
      read: async ({ label, largest }, samples) => {
        const [labels, values] = await Promise.all([label.toArray(), largest.toArray()]);
        return samples.map((_, i) => `${labels[i]} of ${values.length / samples.length}`);
      },
    });
    async function* onTheirWay() {
      for (const sample of samplesOf(7)) yield sample;
    }
    model.eval();
    const results = await predictor.predict(onTheirWay());
    expect(results).toHaveLength(7);
    expect(results.every((result) => /^\d of 10$/.test(result))).toBe(true);
    expect([modes, model.isTraining]).toEqual([[false, false, false], false]);
    const first: string[] = [];
    for await (const result of predictor.stream(samplesOf(100))) {
      first.push(result);
      if (first.length === 2) break;
    }
    expect(first).toEqual(results.slice(0, 2));
    expect(modes.length).toBeLessThan(8);
    expect(runtime.leakedTensors).toBe(0);
  });

  it("says what is wrong, and goes on afterwards", async () => {
    const runtime = cpuRuntime();
    expect(() => predictorOf(runtime, { batchSize: 0 })).toThrow("batchSize is 0");
    expect(() => predictorOf(runtime, { batchSize: "4" as never })).toThrow('batchSize is "4"');
    const late = predictorOf(runtime, { forward: (async () => {}) as never }).predictor;
    await expect(late.predict(samplesOf(1))).rejects.toThrow("forward() gave a promise: it must");
    const flat = predictorOf(runtime, { forward: () => runtime.full([3], 1) }).predictor;
    await expect(flat.predict(samplesOf(2))).rejects.toThrow(
      "a tensor of shape [3] for 2 samples: its first dimension must be theirs",
    );
    const short = predictorOf(runtime, { read: async () => [] }).predictor;
    await expect(short.predict(samplesOf(2))).rejects.toThrow("gave 0 results of 2 samples");
    let isBroken = true;
    const broken = predictorOf(runtime, {
      forward: (samples) => {
        if (isBroken) throw new RangeError("no such word");
        return batchOf(runtime, samples);
      },
    });
    await expect(broken.predictor.predict(samplesOf(9))).rejects.toThrow("no such word");
    isBroken = false;
    expect(await broken.predictor.predict(samplesOf(9))).toHaveLength(9);
    const running = broken.predictor.predict(samplesOf(1));
    expect(() => broken.predictor.half()).toThrow("while samples are predicted");
    await running;
    broken.predictor.dispose();
    await expect(broken.predictor.predict(samplesOf(1))).rejects.toThrow("after dispose()");
  });

  it("refuses samples that the iterable has written over each other, where they share a batch", async () => {
    const runtime = cpuRuntime();
    const samples = samplesOf(5);
    function* reusing() {
      const one = new Float32Array(features);
      for (const sample of samples) {
        one.set(sample);
        yield one;
      }
    }
    const { predictor } = predictorOf(runtime, { batchSize: 2 });
    await expect(predictor.predict(reusing())).rejects.toThrow(
      "sample 1 of 2 of a batch has changed since it was taken: the samples of a batch are used together, so each needs memory of its own, or take batchSize: 1",
    );
    const alone = predictorOf(runtime, { batchSize: 1 }).predictor;
    expect(await alone.predict(reusing())).toEqual(await alone.predict(samples));
    const [first] = samples as [Sample];
    expect(await predictor.predict([first, first, first])).toHaveLength(3);

    const lists = new Predictor<readonly number[]>({
      ...{ runtime, model: network(runtime), batchSize: 4 },
      forward: (rows) => runtime.tensor(rows.flat(), [rows.length, 2]),
    });
    function* renewing() {
      const list = [0, 0];
      for (let i = 0; i < 3; i++) {
        list[0] = i;
        yield list;
      }
    }
    await expect(lists.predict(renewing())).rejects.toThrow("sample 1 of 3 of a batch has changed");
  });

  it("serves calls that overlap, also within a stream, and gives the model its mode back after the last", async () => {
    const runtime = cpuRuntime();
    const { predictor, model, sizes } = predictorOf(runtime);
    const samples = samplesOf(6);
    const together = await predictor.predict(samples);
    sizes.length = 0;
    const requests = samples.map((sample) => predictor.predict([sample]));
    expect(() => predictor.dispose()).toThrow("dispose() while samples are predicted");
    const alone = (await Promise.all(requests)).flat();
    expect(closeTo(together, alone)).toBeLessThan(1e-6);
    expect([sizes, model.isTraining]).toEqual([Array(6).fill(1), true]);
    const within: Row[] = [];
    for await (const row of predictor.stream(samples.slice(0, 5))) {
      const [again] = await predictor.predict([samples[within.length] as Sample]);
      expect(closeTo([row], [again as Row])).toBeLessThan(1e-6);
      expect(model.isTraining).toBe(false);
      within.push(row);
    }
    expect([within.length, model.isTraining, runtime.leakedTensors]).toEqual([5, true, 0]);
    const { samples: count, batches } = await predictor.usage();
    expect([count, batches]).toEqual([6 + 6 + 5 + 5, 2 + 6 + 2 + 5]);
    predictor.dispose();
  });

  it("goes on with other calls where one fails", async () => {
    const runtime = cpuRuntime();
    const { predictor, model } = predictorOf(runtime, {
      forward: (samples) => {
        if (samples[0]?.length !== features) throw new RangeError("no such sample");
        return batchOf(runtime, samples);
      },
    });
    const [good] = samplesOf(1);
    const calls = [[good as Sample], [new Float32Array(1)], [good as Sample]];
    const settled = await Promise.allSettled(calls.map((each) => predictor.predict(each)));
    expect(settled.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
    expect(model.isTraining).toBe(true);
  });

  it("leaves in float32 what modules keep there", () => {
    const runtime = cpuRuntime();
    const model = new DigitsCnn(runtime, { seed: 0 });
    new Predictor({ runtime, model, batchSize: 1, forward: () => runtime.zeros([1]) }).half();
    expect(model.conv1.weight.dtype).toBe("float16");
    expect(model.bn1.weight?.dtype).toBe("float32");
  });

  it("takes half the memory in half precision, agrees, and gives back what it used", async () => {
    const device = await requestTestDevice();
    const runtime = gpuRuntime(device);
    const samples = samplesOf(40);
    const { predictor } = predictorOf(runtime, { device, batchSize: 16 });
    const exact = await predictor.predict(samples);
    const before = await predictor.usage();
    const live = device.memory.live;
    predictor.half().emptyCache();
    expect(device.memory.pooled).toBe(0);
    expect(device.memory.live).toBeLessThan(live - before.parameterBytes / 2);
    const halves = await predictor.predict(samples);
    const after = await predictor.usage();
    expect(closeTo(exact, halves)).toBeGreaterThan(0);
    expect(closeTo(exact, halves)).toBeLessThan(5e-3);
    expect(after.parameterBytes).toBe(before.parameterBytes / 2);
    expect(after.batchBytes).toBeLessThan(before.batchBytes);
    expect(after.peakBytes).toBeLessThan(before.peakBytes);
    expect([after.samples, after.batches]).toEqual([40, 3]);
    expect(after.milliseconds).toBeGreaterThan(0);
    if (device.capabilities.hasTimestamps) expect(after.deviceMsPerBatch).toBeGreaterThan(0);
    const brain = await predictor.bfloat16().predict(samples);
    expect(closeTo(exact, brain)).toBeLessThan(5e-2);
  });
});
