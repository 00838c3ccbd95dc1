import { setTimeout as sleep } from "node:timers/promises";
import { cpuRuntime } from "@halfstep/tensor";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { training } from "../test/class-training.js";
import { classifier, logitsOf, type Samples, sampleBatches } from "../test/classes.js";
import { memoryCheckpoints } from "./checkpoint/memory-checkpoints.js";
import { type EvaluateOptions, evaluate } from "./evaluate.js";
import { evaluateEvery } from "./hooks.js";
import type { TrainOptions } from "./train.js";

const unhandled: unknown[] = [];
const listen = (reason: unknown): unknown => unhandled.push(reason);
beforeEach(() => void process.on("unhandledRejection", listen));
afterEach(async () => {
  await sleep(20);
  process.off("unhandledRejection", listen);
  expect(unhandled.splice(0)).toEqual([]);
});

const failure = new Error("the disk is full");
const fail = async (): Promise<never> => {
  await undefined;
  throw failure;
};
const evaluation = evaluateEvery({
  every: { steps: 3 },
  evaluate: async () => ({ loss: 1 }),
});

describe("a promise of a callback that reports", () => {
  it.each<[name: string, options: Partial<TrainOptions<Samples>>]>([
    ["onStep", { onStep: fail }],
    ["onEvaluation", { onEvaluation: fail, hooks: { evaluation } }],
    ["onStep of a hook", { hooks: { failing: { onStep: fail } } }],
    ["onEvaluation of a hook", { hooks: { evaluation, failing: { onEvaluation: fail } } }],
    [
      "onResult of evaluateEvery",
      {
        hooks: {
          evaluation: evaluateEvery({
            ...{ every: { steps: 3 }, onResult: fail },
            evaluate: async () => ({ loss: 1 }),
          }),
        },
      },
    ],
  ])("rejects train() where it rejects: %s", async (_, options) => {
    await expect(training().run({ epochs: 20, ...options })).rejects.toBe(failure);
  });

  it("rejects train() where onNote of its checkpoints does", async () => {
    const { run, model, optimizer } = training();
    const parts = { model, optimizer };
    const checkpoints = {
      ...{ store: memoryCheckpoints(), parts, onNote: fail },
      resume: "auto" as const,
    };
    await expect(run({ checkpoints })).rejects.toBe(failure);
  });

  it("ends training soon, and its listener is told no more", async () => {
    const failing: number[] = [];
    const others: number[] = [];
    const { run } = training();
    const ending = run({
      epochs: 100,
      onStep: ({ step }) => {
        failing.push(step);
        return step === 16 ? fail() : undefined;
      },
      hooks: { log: { onStep: ({ step }) => void others.push(step) } },
    });
    await expect(ending).rejects.toBe(failure);
    expect(failing).toEqual(others.slice(0, failing.length));
    expect(others.length).toBeLessThan(60);
  });

  it("is not waited for in a step, but at the end, when the checkpoint is saved", async () => {
    const { run, model, optimizer } = training();
    const store = memoryCheckpoints();
    const done: number[] = [];
    let most = 0;
    let underWay = 0;
    await run({
      epochs: 8,
      onStep: async ({ step }) => {
        most = Math.max(most, ++underWay);
        await sleep(5);
        underWay--;
        done.push(step);
      },
      checkpoints: { store, parts: { model, optimizer } },
    });
    expect(most).toBeGreaterThan(1);
    expect(done).toEqual(Array.from({ length: 40 }, (_, i) => i + 1));
    const last = run({ onStep: fail, checkpoints: { store, parts: { model, optimizer } } });
    await expect(last).rejects.toBe(failure);
    expect((await store.newest()).checkpoint?.step).toBe(5);
  });
});

describe("a promise of a callback whose result is needed at once", () => {
  it.each<[name: string, options: object]>([
    ["loss()", { loss: fail }],
    ["samples()", { samples: fail }],
    ["reduce()", { reduce: fail }],
    ["record() of the hook ema", { hooks: { ema: { record: fail } } }],
    [
      "score() of evaluateEvery()",
      {
        hooks: {
          evaluation: evaluateEvery({
            ...{ every: { steps: 1 }, score: fail as never },
            evaluate: async () => ({ loss: 1 }),
          }),
        },
      },
    ],
    [
      "values() of evaluateEvery()",
      {
        hooks: {
          evaluation: evaluateEvery({
            ...{ every: { steps: 1 }, values: fail as never },
            evaluate: async () => ({ loss: 1 }),
          }),
        },
      },
    ],
  ])("is refused: %s", async (name, options) => {
    const { run } = training();
    const failing = run(options);
    await expect(failing).rejects.toThrow(
      `${name} gave a promise: it must be a synchronous function`,
    );
    await expect(failing).rejects.toThrow(TypeError);
  });

  it("is refused: clip()", async () => {
    await expect(training().run({ clip: fail })).rejects.toThrow("takes a synchronous function");
  });
});

describe("evaluate()", () => {
  const run = (options: object) => {
    const runtime = cpuRuntime();
    const model = classifier(runtime);
    return evaluate<Samples>({
      ...{ runtime, precision: "float32" },
      logits: (batch) => logitsOf(model, batch),
      labels: ({ labels }) => labels,
      batches: sampleBatches(3, 16, 0),
      ...(options as Partial<EvaluateOptions<Samples>>),
    });
  };

  it("rejects where a promise of onBatch does, and awaits it", async () => {
    await expect(run({ onBatch: fail })).rejects.toBe(failure);
    let done = 0;
    await run({
      onBatch: async () => {
        await sleep(5);
        done++;
      },
    });
    expect(done).toBe(3);
  });

  it.each(["logits", "labels"])("refuses a promise of %s", async (name) => {
    await expect(run({ [name]: fail })).rejects.toThrow(`${name}() gave a promise: it must be`);
  });
});
