import { type CompileProgress, type Device, DeviceLostError } from "@halfstep/device";
import { requestDevice } from "@halfstep/device/node";
import { requestTestDevice } from "@halfstep/device/testing";
import {
  GradScaler,
  type GradScalerOptions,
  ScaleCollapseError,
  type StepOutcome,
} from "@halfstep/grad-scaler";
import { AdamW } from "@halfstep/optim";
import {
  ampPrimitives,
  cpuRuntime,
  flatten,
  gpuRuntime,
  type Runtime,
  type Tensor,
} from "@halfstep/tensor";
import { describe, expect, it, vi } from "vitest";
import { classifier, lossOf, type Samples, sampleBatches } from "../test/classes.js";
import { DivergenceError } from "./errors.js";
import type { StepMetrics } from "./summary.js";
import { type TrainOptions, type TrainResult, train } from "./train.js";

interface Place {
  readonly runtime: Runtime;
  readonly device?: Device;
}

const places = [
  ["CPU", async (): Promise<Place> => ({ runtime: cpuRuntime() })],
  [
    "GPU",
    async (): Promise<Place> => {
      const device = await requestTestDevice();
      return { runtime: gpuRuntime(device), device };
    },
  ],
] as const;

interface Told {
  readonly metrics: StepMetrics;
  readonly outcome: StepOutcome | undefined;
}

const lrAfter = (applied: number): number => 0.01 / (1 + applied);

/** A classifier with its optimizer and scaler, and a way to train it that remembers what was told of each step. */
const training = (place: Place, scaling: GradScalerOptions) => {
  const model = classifier(place.runtime);
  const optimizer = new AdamW(place.runtime.target, flatten(model.parameters()), { lr: 0.01 });
  const scaler = new GradScaler(ampPrimitives(place.runtime), {
    outcomeSchedule: false,
    ...scaling,
  });
  const told: Told[] = [];
  const loss = (batch: Samples): Tensor => lossOf(model, batch);
  const run = (options: Partial<TrainOptions<Samples>> = {}): Promise<TrainResult> =>
    train<Samples>({
      ...place,
      precision: "float16",
      loss,
      optimizer,
      scaler,
      epochs: 1,
      batches: (epoch) => sampleBatches(20, 16, epoch),
      lr: lrAfter,
      onStep: (metrics, outcome) => told.push({ metrics, outcome }),
      ...options,
    });
  const parameters = async (): Promise<number[]> =>
    (await Promise.all([...model.parameters()].map((each) => each.toArray()))).flatMap((values) => [
      ...values,
    ]);
  return { model, scaler, optimizer, told, loss, run, parameters };
};

const numbers = (from: number, to: number): number[] =>
  Array.from({ length: to - from + 1 }, (_, i) => from + i);

it("compiles all programs of a step before it runs, without blocking, and tells hooks how far it is", async () => {
  const device = await requestDevice({ label: "cold" });
  const { run } = training({ runtime: gpuRuntime(device), device }, {});
  const blocking = vi.spyOn(device.gpu, "createComputePipeline");
  const compiling: CompileProgress[] = [];
  let firstStep: number | undefined;
  await run({
    hooks: {
      log: {
        onCompile: (progress) => compiling.push(progress),
        afterStep() {
          firstStep ??= compiling.length;
        },
      },
    },
  });
  const total = compiling[0]?.total ?? 0;
  expect(total).toBeGreaterThan(10);
  expect(compiling.map(({ compiled }) => compiled)).toEqual(numbers(0, total));
  expect(firstStep).toBe(compiling.length);
  expect(blocking).not.toHaveBeenCalled();
  device.destroy();
});

describe.each(places)("train() on the %s", (_, open) => {
  it("tells every step once, in order, and recovers from a scale that overflows", async () => {
    const { scaler, optimizer, told, run } = training(await open(), {
      initScale: 2 ** 40,
      growthInterval: 8,
    });
    const result = await run({ epochs: 3 });

    expect(told.map(({ metrics }) => metrics.step)).toEqual(numbers(1, 60));
    expect(told.map(({ metrics }) => metrics.epoch)).toEqual(
      numbers(0, 59).map((i) => 1 + Math.floor(i / 20)),
    );
    expect(new Set(told.map(({ metrics }) => metrics.precision))).toEqual(new Set(["float16"]));

    const skipped = told.filter(({ metrics }) => !metrics.applied);
    expect(skipped.length).toBeGreaterThan(10);
    expect(skipped.length).toBeLessThan(30);
    expect(told[0]?.outcome).toMatchObject({
      status: "skipped",
      foundInf: true,
      scaleBefore: 2 ** 40,
      scaleAfter: 2 ** 39,
    });

    // What was told is one history: scales follow each other, and rates follow the applied steps.
    const history: unknown[] = [];
    const expected: unknown[] = [];
    let applied = 0;
    let scale = 2 ** 40;
    for (const { metrics, outcome } of told) {
      const isSkipped = outcome?.status === "skipped";
      history.push([metrics.applied, metrics.scale, metrics.lr, outcome?.scaleBefore]);
      expected.push([!isSkipped, scale, lrAfter(applied), scale]);
      if (!isSkipped) applied++;
      scale = outcome?.scaleAfter ?? scale;
    }
    expect(history).toEqual(expected);

    const state = await scaler.stateDict();
    expect(result).toMatchObject({
      steps: 60,
      appliedSteps: applied,
      skippedSteps: skipped.length,
      finalScale: state.scale,
      isAborted: false,
    });
    expect(await optimizer.appliedSteps()).toEqual([applied]);
    expect(state.scale).toBe(scale);

    const losses = told.map(({ metrics }) => metrics.loss as number);
    expect(losses.every(Number.isFinite)).toBe(true);
    expect(losses.at(-1)).toBeLessThan(0.8 * (losses[0] as number));
  });

  it("runs a batch again that overflowed, where it is asked to", async () => {
    const { told, run } = training(await open(), { initScale: 2 ** 40 });
    const seen: number[] = [];
    function* batches(): Generator<Samples> {
      for (const [i, batch] of [...sampleBatches(5, 16, 0)].entries()) {
        seen.push(i);
        yield batch;
      }
    }
    const result = await run({ batches, onOverflow: "retry" });
    const skipped = told.filter(({ metrics }) => !metrics.applied).length;
    expect(skipped).toBeGreaterThan(10);
    expect(seen).toEqual([0, 1, 2, 3, 4]);
    expect(result).toMatchObject({ steps: 5 + skipped, appliedSteps: 5, skippedSteps: skipped });
    // The first batch is what it was all along: its loss is the same each time.
    const losses = told.slice(0, skipped + 1).map(({ metrics }) => metrics.loss);
    expect(new Set(losses).size).toBe(1);
  });

  it("refuses to run a batch again under a scale that does not change", async () => {
    const { run } = training(await open(), { preset: "static", initScale: 2 ** 40 });
    await expect(run({ onOverflow: "retry" })).rejects.toThrow("the loss scale is not dynamic");
  });

  it.each([{ epochs: Number.NaN }, { epochs: 0.5 }, { epochs: -1 }, { maxSteps: Number.NaN }])(
    "refuses %o, which would never end",
    async (count) => {
      const { run } = training(await open(), {});
      await expect(run(count)).rejects.toThrow("it must be a whole number from 0 on, or Infinity");
    },
  );

  it("trains without a scaler in float32: scale 1, every step applied", async () => {
    const { told, run } = training(await open(), { enabled: false });
    const result = await run({ precision: "float32", epochs: 2 });
    expect(result).toMatchObject({ steps: 40, appliedSteps: 40, skippedSteps: 0, finalScale: 1 });
    expect(new Set(told.map(({ metrics, outcome }) => [metrics.scale, outcome].join()))).toEqual(
      new Set(["1,"]),
    );
    expect(told.at(-1)?.metrics.loss).toBeLessThan(0.8 * (told[0]?.metrics.loss as number));
  });

  it("ends after the step that is under way when the signal says so, and still tells it", async () => {
    const controller = new AbortController();
    const { told, run, optimizer, loss } = training(await open(), {});
    let recorded = 0;
    const result = await run({
      signal: controller.signal,
      loss: (batch) => {
        if (++recorded === 18) controller.abort();
        return loss(batch);
      },
    });
    expect(result).toMatchObject({ steps: 18, isAborted: true });
    expect(told.map(({ metrics }) => metrics.step)).toEqual(numbers(1, 18));
    expect(await optimizer.appliedSteps()).toEqual([18]);
  });

  it("is aborted by a signal that comes before the first step, and not by one after the last", async () => {
    const before = training(await open(), {});
    expect(await before.run({ signal: AbortSignal.abort() })).toMatchObject({
      steps: 0,
      isAborted: true,
    });
    expect(before.told).toEqual([]);

    const controller = new AbortController();
    const after = training(await open(), {});
    const result = await after.run({
      signal: controller.signal,
      batches: function* (epoch) {
        yield* sampleBatches(3, 16, epoch);
        controller.abort();
      },
    });
    expect(result).toMatchObject({ steps: 3, isAborted: false });
  });

  it("tells a loss that is not finite as null, and skips its step", async () => {
    const { told, run, parameters, optimizer } = training(await open(), {});
    const [good, bad] = sampleBatches(2, 16, 0) as [Samples, Samples];
    const before = await parameters();
    const hostile = { ...bad, features: bad.features.map((x, i) => (i === 3 ? Infinity : x)) };
    await run({ batches: () => [hostile] });
    expect(told[0]?.metrics).toMatchObject({ loss: null, applied: false, scale: 65536 });
    expect(told[0]?.outcome).toMatchObject({ scaleAfter: 32768 });
    expect(await parameters()).toEqual(before);

    // The scaler goes on where the call before left it.
    await run({ batches: () => [good] });
    expect(told[1]?.metrics).toMatchObject({ step: 1, applied: true, scale: 32768 });
    expect(await optimizer.appliedSteps()).toEqual([1]);
  });

  it("rejects with what loss() throws, and leaves everything as the step before left it", async () => {
    const { run, parameters, scaler, optimizer } = training(await open(), {});
    const failure = new Error("this batch is broken");
    const unhandled: unknown[] = [];
    const listen = (reason: unknown): unknown => unhandled.push(reason);
    process.on("unhandledRejection", listen);
    try {
      await run({ batches: (epoch) => sampleBatches(17, 16, epoch) });
      const kept = await parameters();
      let calls = 0;
      const failing = run({
        batches: (epoch) => sampleBatches(20, 16, epoch),
        loss: () => {
          calls++;
          throw failure;
        },
      });
      await expect(failing).rejects.toBe(failure);
      expect(calls).toBe(1);
      expect(await parameters()).toEqual(kept);
      expect(await optimizer.appliedSteps()).toEqual([17]);
      expect(await scaler.getScale()).toBe(65536);
      await new Promise((resolve) => setTimeout(resolve, 20));
    } finally {
      process.off("unhandledRejection", listen);
    }
    expect(unhandled).toEqual([]);
  });

  it("rejects when the loss scale collapses", async () => {
    const { run } = training(await open(), { initScale: 1, minScale: 1 });
    const [batch] = sampleBatches(1, 16, 0) as [Samples];
    const hostile = { ...batch, features: batch.features.fill(Number.NaN) };
    await expect(run({ batches: () => [hostile] })).rejects.toBeInstanceOf(ScaleCollapseError);
  });

  it("rejects after a step that was applied though its loss is not finite, unless that is allowed", async () => {
    const hostile = (batch: Samples, i: number): Samples =>
      i === 2 ? { ...batch, features: batch.features.fill(Number.NaN) } : batch;
    const batches = () => sampleBatches(4, 16, 0).map(hostile);
    const told: (number | null)[] = [];
    const saved: number[] = [];
    const diverging = training(await open(), { enabled: false });
    const store = {
      save: async ({ step }: { readonly step: number }) => void saved.push(step),
      newest: async () => ({ checkpoint: undefined, skipped: [] }),
    };
    const failing = diverging.run({
      ...{ precision: "float32", batches, onStep: ({ loss }: StepMetrics) => told.push(loss) },
      checkpoints: {
        store,
        parts: { model: diverging.model, optimizer: diverging.optimizer },
        every: { steps: 1 },
      },
    });
    await expect(failing).rejects.toThrow(DivergenceError);
    await expect(failing).rejects.toThrow(/the loss of step 3 \(float32\) is not finite/);
    expect([told.slice(0, 3).map((loss) => loss === null), saved]).toEqual([
      [false, false, true],
      [1, 2],
    ]);
  });

  it("rejects with what onStep() throws, and tells the others every step that was done", async () => {
    const { run, optimizer } = training(await open(), { initScale: 2 ** 40 });
    const failure = new Error("the disk is full");
    const [first, last]: [number[], StepMetrics[]] = [[], []];
    const failing = run({
      epochs: 3,
      onStep: ({ step }) => {
        first.push(step);
        if (step === 5) throw failure;
      },
      hooks: { log: { onStep: (metrics) => last.push(metrics) } },
    });
    await expect(failing).rejects.toBe(failure);
    expect(first).toEqual(numbers(1, 5));
    expect(last.length).toBeGreaterThan(16);
    expect(last.map(({ step }) => step)).toEqual(numbers(1, last.length));
    const applied = last.filter((metrics) => metrics.applied);
    expect(await optimizer.appliedSteps()).toEqual([applied.length]);
    expect(last.filter(({ scale }, i) => i > 0 && scale === last[i - 1]?.scale)).toHaveLength(
      applied.length - 1,
    );
  });

  it("tells every step before a checkpoint that cannot be saved", async () => {
    const { run, told, optimizer } = training(await open(), {});
    const failure = new Error("the disk is full");
    const store = {
      save: async () => Promise.reject(failure),
      newest: async () => ({ checkpoint: undefined, skipped: [] }),
    };
    const parts = { model: classifier(cpuRuntime()), optimizer };
    const failing = run({ checkpoints: { store, parts, every: { steps: 9 } } });
    await expect(failing).rejects.toBe(failure);
    expect(told.map(({ metrics }) => metrics.step)).toEqual(numbers(1, 9));
  });
});

describe("what training cannot use", () => {
  const open = () => training({ runtime: cpuRuntime() }, {});

  it.each<[options: object, text: string]>([
    [{ loss: () => undefined }, "loss() gave undefined: it must return a tensor"],
    [{ loss: () => 3 }, "loss() gave 3: it must return a tensor"],
    [{ samples: () => undefined }, "samples() gave undefined for a batch: it must be a number"],
    [{ samples: () => Number.NaN }, "samples() gave NaN for a batch: it must be a number from 0"],
    [{ samples: () => -1, accumulate: 2 }, "samples() gave -1 for a batch"],
    [{ epochs: "2" }, 'epochs is "2": it must be a whole number from 0 on, or Infinity'],
    [{ maxSteps: "2" }, 'maxSteps is "2": it must be a whole number'],
    [{ accumulate: "2" }, 'accumulate is "2": it must be a whole number from 1 on'],
    [{ samples: () => "16" }, 'samples() gave "16" for a batch: it must be a number'],
    [{ onOverflow: "Retry" }, 'onOverflow is "Retry": it must be "skip" or "retry"'],
  ])("is refused in a line: %o", async (options, text) => {
    await expect(open().run(options as never)).rejects.toThrow(text);
  });

  it("is a batch that its loader has written another over, where a step has several", async () => {
    const batch = { features: new Float32Array(16 * 6), labels: new Uint32Array(16) };
    function* reusing(): Generator<Samples> {
      for (const { features, labels } of sampleBatches(4, 16, 0)) {
        batch.features.set(features);
        batch.labels.set(labels);
        yield batch;
      }
    }
    await expect(open().run({ batches: reusing, accumulate: 2 })).rejects.toThrow(
      "batch 1 of 2 of a step has changed since it was taken: with accumulate: 2 the batches of a step are used together",
    );
    // One at a time they may share memory, and the same batch may be used twice.
    await expect(open().run({ batches: reusing })).resolves.toMatchObject({ isAborted: false });
    function* renewing(): Generator<Samples> {
      const one = { features: batch.features, labels: batch.labels };
      for (const samples of sampleBatches(4, 16, 0)) yield Object.assign(one, samples);
    }
    await expect(open().run({ batches: renewing, accumulate: 2 })).rejects.toThrow("has changed");
    const twice = [batch, batch, batch];
    await open().run({ batches: () => twice, accumulate: 2 });
  });

  it("is no parameter that is NaN: no checkpoint of it is saved", async () => {
    const diverging = training({ runtime: cpuRuntime() }, { enabled: false });
    const { model, optimizer, loss } = diverging;
    const saved: number[] = [];
    let step = 0;
    // A loss that is finite, of which the gradient is not.
    const lost = (batch: Samples): Tensor => {
      const weight = model.layers[0]?.weight as Tensor;
      const zero = weight.mul(0).abs().sum().sqrt();
      return ++step === 3 ? loss(batch).add(zero) : loss(batch);
    };
    const failing = diverging.run({
      ...{ precision: "float32", loss: lost },
      checkpoints: {
        store: {
          save: async ({ step }: { readonly step: number }) => void saved.push(step),
          newest: async () => ({ checkpoint: undefined, skipped: [] }),
        },
        parts: { model, optimizer },
        every: { steps: 1 },
      },
    });
    await expect(failing).rejects.toThrow(DivergenceError);
    await expect(failing).rejects.toThrow(
      "layers.0.weight is NaN after step 3 (float32), and no checkpoint of it is saved: take a lower",
    );
    expect(saved).toEqual([1, 2]);
  });
});

it("asks for the present learning rate at each step, where it does not depend on applied steps", async () => {
  const { run, told } = training({ runtime: cpuRuntime() }, {});
  let rate = 1;
  await run({ lr: () => rate, hooks: { rate: { afterStep: () => void rate++ } } });
  expect(told.map(({ metrics }) => metrics.lr)).toEqual(numbers(1, 20));
});

it("counts the steps before for a function that takes any number of arguments", async () => {
  const { run, told } = training({ runtime: cpuRuntime() }, {});
  await run({ lr: (...given: number[]) => given[0] as number });
  expect(told.map(({ metrics }) => metrics.lr)).toEqual(numbers(0, 19));
});

it("of a device that is lost it tells the steps that were read, in order, and says so", async () => {
  const device = await requestTestDevice();
  const { run, told, loss } = training({ runtime: gpuRuntime(device), device }, {});
  let recorded = 0;
  const failing = run({
    epochs: 3,
    loss: (batch) => {
      if (++recorded === 40) device.destroy();
      return loss(batch);
    },
  });
  await expect(failing).rejects.toBeInstanceOf(DeviceLostError);
  // The report of step 32 has waited for the first 16; those after it may still be under way.
  expect(told.length).toBeGreaterThanOrEqual(16);
  expect(told.map(({ metrics }) => metrics.step)).toEqual(numbers(1, told.length));
});

describe("a step on the GPU", () => {
  it.each(["float32", "float16", "bfloat16"] as const)(
    "in %s waits for nothing and creates nothing in steady state",
    async (precision) => {
      const device = await requestTestDevice();
      const place = { runtime: gpuRuntime(device), device };
      const { run } = training(place, { enabled: precision === "float16" });
      const { perStep, msPerStep, activationBytes, stepBytes } = await run({
        precision,
        epochs: 3,
      });
      expect(perStep).toEqual({
        hostWaits: 0,
        submits: 1,
        dispatches: expect.any(Number),
        castDispatches: 0,
        buffersCreated: 0,
        bindGroupsCreated: 0,
      });
      expect(perStep.dispatches).toBeGreaterThan(8);
      expect(perStep.dispatches).toBe(place.runtime.lastPlan?.launches.length);
      expect(msPerStep).toBeGreaterThan(0);
      expect(activationBytes).toBeGreaterThan(0);
      expect(stepBytes).toBeGreaterThanOrEqual(activationBytes);
    },
  );

  it("is measured in runs too short for a steady state", async () => {
    const device = await requestTestDevice();
    const { run } = training({ runtime: gpuRuntime(device), device }, {});
    const { perStep, msPerStep } = await run({ batches: (epoch) => sampleBatches(3, 16, epoch) });
    expect(msPerStep).toBeGreaterThan(0);
    expect(perStep).toMatchObject({ hostWaits: 0, submits: 1 });
  });
});
