import { requestTestDevice } from "@halfstep/device/testing";
import { bfloat16, float16 } from "@halfstep/formats";
import type { Mlp } from "@halfstep/models";
import { cpuRuntime, gpuRuntime } from "@halfstep/tensor";
import { describe, expect, it } from "vitest";
import { classCount, classifier, logitsOf, type Samples, samples } from "../test/classes.js";
import { type Evaluation, evaluate } from "./evaluate.js";
import type { Precision } from "./summary.js";

const rounding: Readonly<Record<Precision, (value: number) => number>> = {
  float32: (value) => value,
  float16: (value) => float16.round(value),
  bfloat16: (value) => bfloat16.round(value),
};

/** Accuracy and loss in float64; operands and results of layers are rounded as autocast stores them. */
async function reference(model: Mlp, precision: Precision, set: Samples): Promise<Evaluation> {
  const round = rounding[precision];
  const layers = await Promise.all(
    model.layers.map(async ({ weight, bias }) => ({
      weight: [...(await weight.toArray())].map(round),
      bias: [...((await bias?.toArray()) ?? [])].map(round),
    })),
  );
  const width = set.features.length / set.labels.length;
  let correct = 0;
  let loss = 0;
  for (const [i, label] of set.labels.entries()) {
    let values = [...set.features.subarray(i * width, (i + 1) * width)].map(round);
    for (const [depth, { weight, bias }] of layers.entries()) {
      const input = depth === 0 ? values : values.map((value) => Math.max(0, value));
      values = bias.map((start, row) =>
        round(
          input.reduce(
            (sum, value, k) => sum + value * (weight[row * input.length + k] as number),
            start,
          ),
        ),
      );
    }
    const largest = Math.max(...values);
    if (values.indexOf(largest) === label) correct++;
    loss +=
      largest +
      Math.log(values.reduce((sum, value) => sum + Math.exp(value - largest), 0)) -
      (values[label] as number);
  }
  const count = set.labels.length;
  return { accuracy: correct / count, loss: loss / count, samples: count };
}

/** Batches of 16, the last one smaller. */
function* inBatches({ features, labels }: Samples): Generator<Samples> {
  const width = features.length / labels.length;
  for (let start = 0; start < labels.length; start += 16)
    yield {
      features: features.subarray(start * width, (start + 16) * width),
      labels: labels.subarray(start, start + 16),
    };
}

describe.each([
  ["CPU", async () => cpuRuntime()],
  ["GPU", async () => gpuRuntime(await requestTestDevice())],
] as const)("evaluate() on the %s", (_, open) => {
  it.each([
    ["float32", 1e-6],
    ["float16", 2e-4],
    ["bfloat16", 2e-3],
  ] as const)("agrees with float64 arithmetic in %s", async (precision, tolerance) => {
    const runtime = await open();
    const model = classifier(runtime, 4);
    const set = samples(43, 5);
    const found = await evaluate<Samples>({
      runtime,
      precision,
      logits: (batch) => logitsOf(model, batch),
      labels: ({ labels }) => labels,
      batches: inBatches(set),
    });
    const expected = await reference(model, precision, set);
    expect(found.samples).toBe(43);
    expect(found.accuracy).toBe(expected.accuracy);
    expect(Math.abs(found.loss - expected.loss)).toBeLessThan(tolerance);
    // An untrained network is neither right nor wrong about everything, so both figures say something.
    expect(found.accuracy).toBeGreaterThan(0.1);
    expect(found.accuracy).toBeLessThan(0.9);
    expect(found.loss).toBeGreaterThan(0.8 * Math.log(classCount));
  });

  it("counts whose class is among the best, and tells predictions of batches that take time", async () => {
    const runtime = await open();
    const model = classifier(runtime, 4);
    const set = samples(43, 5);
    const predictions: number[] = [];
    const options = {
      ...{ runtime, precision: "float32" },
      logits: (batch: Samples) => logitsOf(model, batch),
      labels: ({ labels }: Samples) => labels,
      onBatch: (_: Samples, best: Uint32Array) => void predictions.push(...best),
    };
    async function* later(): AsyncGenerator<Samples> {
      for (const batch of inBatches(set)) {
        await new Promise((resolve) => setTimeout(resolve, 1));
        yield batch;
      }
    }
    const one = await evaluate<Samples>({ ...options, batches: inBatches(set) });
    const single = predictions.splice(0);
    const two = await evaluate<Samples>({ ...options, batches: later(), topK: 2 });
    // Each sample's logits, ranked here.
    const logits = await logitsOf(model, set).toArray();
    const rankOf = (label: number, i: number): number => {
      const row = logits.subarray(i * classCount, (i + 1) * classCount);
      return row.filter((logit) => logit > (row[label] as number)).length;
    };
    const ranks = Array.from(set.labels, rankOf);
    expect(one).not.toHaveProperty("topKAccuracy");
    expect(two).toEqual({ ...one, topKAccuracy: ranks.filter((rank) => rank < 2).length / 43 });
    expect(two.topKAccuracy).toBeGreaterThan(one.accuracy);
    expect(predictions).toEqual(single);
    expect(predictions.map((best, i) => best === set.labels[i])).toEqual(
      ranks.map((rank) => rank === 0),
    );
    const all = await evaluate<Samples>({ ...options, batches: inBatches(set), topK: 9 });
    expect(all.topKAccuracy).toBe(1);
    await expect(evaluate<Samples>({ ...options, batches: [], topK: 0 })).rejects.toThrow(
      "topK is 0: it must be a whole number from 1 on",
    );
  });

  it("takes batches of a loader that writes each over the one before", async () => {
    const runtime = await open();
    const model = classifier(runtime, 4);
    const set = samples(48, 5);
    function* reusing(): Generator<Samples> {
      const batch = { features: new Float32Array(16 * 6), labels: new Uint32Array(16) };
      for (const { features, labels } of inBatches(set)) {
        batch.features.set(features);
        batch.labels.set(labels);
        yield batch;
      }
    }
    const options = {
      ...{ runtime, precision: "float32" },
      logits: (batch: Samples) => logitsOf(model, batch),
      labels: ({ labels }: Samples) => labels,
    };
    const expected = await evaluate<Samples>({ ...options, batches: inBatches(set) });
    expect(await evaluate<Samples>({ ...options, batches: reusing() })).toEqual(expected);
  });

  it("ends with the batch that is under way when the signal says so", async () => {
    const runtime = await open();
    const model = classifier(runtime);
    const stop = new AbortController();
    const found = await evaluate<Samples>({
      ...{ runtime, precision: "float32", signal: stop.signal },
      logits: (batch) => {
        stop.abort();
        return logitsOf(model, batch);
      },
      labels: ({ labels }) => labels,
      batches: inBatches(samples(40, 1)),
    });
    expect(found).toMatchObject({ samples: 16, isAborted: true });
    const whole = await evaluate<Samples>({
      ...{ runtime, precision: "float32", signal: stop.signal },
      logits: (batch) => logitsOf(model, batch),
      labels: ({ labels }) => labels,
      batches: inBatches(samples(9, 1)),
    });
    expect(whole.samples).toBe(9);
    expect(whole).not.toHaveProperty("isAborted");
  });

  it("refuses options that it does not have", async () => {
    const runtime = await open();
    const options = { ...{ runtime, precision: "float32", topk: 3, batches: [] } } as const;
    const wrong = evaluate({
      ...options,
      logits: () => runtime.zeros([1]),
      labels: () => [] as never,
    });
    await expect(wrong).rejects.toThrow("evaluate() has no option topk: it has batches, labels, ");
  });

  it("rejects with what logits() throws", async () => {
    const runtime = await open();
    const model = classifier(runtime);
    const failure = new Error("no such batch");
    let calls = 0;
    const evaluation = evaluate<Samples>({
      runtime,
      precision: "float32",
      logits: (batch) => {
        if (++calls === 2) throw failure;
        return logitsOf(model, batch);
      },
      labels: ({ labels }) => labels,
      batches: inBatches(samples(40, 1)),
    });
    await expect(evaluation).rejects.toBe(failure);
  });

  it("refuses to give the accuracy of nothing", async () => {
    const runtime = await open();
    const evaluation = evaluate<Samples>({
      runtime,
      precision: "float32",
      logits: (batch) => logitsOf(classifier(runtime), batch),
      labels: ({ labels }) => labels,
      batches: [],
    });
    await expect(evaluation).rejects.toThrow("evaluate() got no samples");
  });
});
