import { ScaleCollapseError } from "@halfstep/grad-scaler";
import type { Module } from "@halfstep/nn";
import { clipGradNorm } from "@halfstep/optim";
import { describe, expect, it } from "vitest";
import { training } from "../test/class-training.js";
import { lossOf, type Samples, sampleBatches } from "../test/classes.js";
import type { CheckpointContent } from "./checkpoint/checkpoint.js";
import { memoryCheckpoints } from "./checkpoint/memory-checkpoints.js";
import { dumpFirstPlan } from "./cli/dump-first-plan.js";
import { type EvaluatedAt, type EvaluationOptions, evaluateEvery, type Training } from "./hooks.js";
import type { TrainOptions } from "./train.js";

describe("accumulation", () => {
  it("makes one step of the mean of batches, and of what is left at the end of an epoch", async () => {
    const whole = training({ enabled: false });
    const joined = (batches: readonly Samples[]): Samples => ({
      features: Float32Array.from(batches.flatMap(({ features }) => [...features])),
      labels: Uint32Array.from(batches.flatMap(({ labels }) => [...labels])),
    });
    const split = sampleBatches(5, 16, 0);
    await whole.run({
      batches: () => [joined(split.slice(0, 2)), joined(split.slice(2, 4)), joined(split.slice(4))],
    });

    const accumulated = training({ enabled: false });
    const result = await accumulated.run({ accumulate: 2 });
    expect(result).toMatchObject({ steps: 3, appliedSteps: 3 });
    const [expected, found] = [await whole.weights(), await accumulated.weights()];
    expect(
      Math.max(...found.map((value, i) => Math.abs(value - (expected[i] as number)))),
    ).toBeLessThan(1e-6);
    const losses = accumulated.told.map(({ loss }, i) =>
      Math.abs((loss as number) - (whole.told[i]?.loss as number)),
    );
    expect(Math.max(...losses)).toBeLessThan(1e-6);
  });

  it("weights batches of unequal size by their samples", async () => {
    const [a, b] = [sampleBatches(1, 24, 1)[0] as Samples, sampleBatches(1, 8, 2)[0] as Samples];
    const whole = training();
    const both = {
      features: Float32Array.of(...a.features, ...b.features),
      labels: Uint32Array.of(...a.labels, ...b.labels),
    };
    await whole.run({ batches: () => [both] });
    const weighted = training();
    await weighted.run({
      accumulate: 2,
      batches: () => [a, b],
      samples: ({ labels }) => labels.length,
    });
    expect(weighted.told[0]?.loss).toBeCloseTo(whole.told[0]?.loss as number, 5);
    const alike = training();
    await alike.run({ accumulate: 2, batches: () => [a, b] });
    expect(
      Math.abs((alike.told[0]?.loss as number) - (whole.told[0]?.loss as number)),
    ).toBeGreaterThan(1e-4);
  });

  it("steps as without a batch whose samples do not count, in any place", async () => {
    const [a, b] = [sampleBatches(1, 24, 1)[0] as Samples, sampleBatches(1, 8, 2)[0] as Samples];
    const after = async (batches: readonly Samples[]) => {
      const { run, weights, told } = training();
      const samples = (batch: Samples) => (batch === b ? 0 : batch.labels.length);
      await run({ accumulate: batches.length, batches: () => batches, samples });
      return { weights: await weights(), losses: told.map(({ loss }) => loss) };
    };
    const alone = await after([a]);
    expect(await after([a, b])).toEqual(alone);
    expect(await after([b, a])).toEqual(alone);
    // Where no sample counts, other processes decide, and the losses are those of its own.
    expect((await after([b])).losses).toHaveLength(1);
    expect((await after([b])).losses[0]).toBeGreaterThan(0);
  });

  it("clips once, unscaled, and leaves no window open where a micro-step throws", async () => {
    const { run, optimizer, scaler, weights } = training();
    let clips = 0;
    const clip = (): void => {
      clips++;
      clipGradNorm(optimizer, 1e-3);
    };
    await run({ accumulate: 2, clip });
    expect(clips).toBe(3);
    const before = await weights();
    let calls = 0;
    const failing = run({
      accumulate: 2,
      loss: () => {
        throw new Error(`call ${++calls}`);
      },
    });
    await expect(failing).rejects.toThrow("call 1");
    const secondFails = run({
      accumulate: 2,
      batches: function* () {
        yield* sampleBatches(1, 16, 0);
        yield { features: new Float32Array(5), labels: new Uint32Array(1) };
      },
    });
    await expect(secondFails).rejects.toThrow("shape");
    expect(await weights()).toEqual(before);
    // The scaler takes losses again.
    expect((await run()).appliedSteps).toBe(5);
    expect(await scaler.getScale()).toBe(65536);
  });

  it("reads batches that are still on their way", async () => {
    const { run, told } = training();
    let closed = 0;
    await run({
      maxSteps: 3,
      epochs: Number.POSITIVE_INFINITY,
      async *batches(epoch) {
        try {
          for (const batch of sampleBatches(2, 16, epoch)) yield batch;
        } finally {
          closed++;
        }
      },
    });
    expect(told.map(({ step, epoch }) => [step, epoch])).toEqual([
      [1, 1],
      [2, 1],
      [3, 2],
    ]);
    expect(closed).toBe(2);
    await expect(run({ epochs: Number.POSITIVE_INFINITY, batches: () => [] })).rejects.toThrow(
      "epoch 1 has no batches",
    );
    const once = sampleBatches(2, 16, 0)[Symbol.iterator]();
    await expect(run({ epochs: 2, batches: () => once })).rejects.toThrow("epoch 2 has no batches");
    await expect(run({ accumulate: 0.5 })).rejects.toThrow("accumulate is 0.5");
  });
});

describe("steps before a failure are told", () => {
  it("where a loss throws", async () => {
    const { run, told, model } = training();
    let calls = 0;
    const failing = run({
      epochs: 9,
      loss: (batch) => {
        if (++calls === 40) throw new Error("broken");
        return lossOf(model, batch);
      },
    });
    await expect(failing).rejects.toThrow("broken");
    expect(told.map(({ step }) => step)).toEqual(Array.from({ length: 39 }, (_, i) => i + 1));
  });

  it("where the scale collapses, with those after the collapse", async () => {
    const { run, told } = training({ initScale: 1, minScale: 1 });
    const batches = sampleBatches(5, 16, 0).map((batch, i) => ({
      ...batch,
      features: i === 2 ? batch.features.fill(Number.NaN) : batch.features,
    }));
    await expect(run({ batches: () => batches })).rejects.toBeInstanceOf(ScaleCollapseError);
    expect(told.map(({ step, applied }) => `${step} ${applied}`)).toEqual([
      "1 true",
      "2 true",
      "3 false",
      "4 true",
      "5 true",
    ]);
  });

  it("but not to someone who has thrown", async () => {
    const { run } = training();
    const seen: number[] = [];
    const failing = run({
      epochs: 5,
      onStep: ({ step }) => {
        seen.push(step);
        if (step === 3) throw new Error("enough");
      },
    });
    await expect(failing).rejects.toThrow("enough");
    expect(seen).toEqual([1, 2, 3]);
  });
});

describe("hooks", () => {
  const evaluating = async (
    scores: readonly number[],
    options: Partial<EvaluationOptions<{ loss: number }>>,
    more: Partial<TrainOptions<Samples>> = {},
  ) => {
    const { run, model } = training();
    const at: (EvaluatedAt & { isTraining: boolean })[] = [];
    const saved: CheckpointContent[] = [];
    let isTraining = true;
    const hook = evaluateEvery({
      every: { epochs: 1 },
      model,
      evaluate: async () => {
        isTraining = model.isTraining;
        return { loss: scores[at.length] as number };
      },
      onResult: (_, where) => at.push({ ...where, isTraining }),
      ...options,
    });
    const { optimizer } = training();
    const store = {
      save: async (content: CheckpointContent) => void saved.push(content),
      newest: async () => ({ checkpoint: undefined, skipped: [] }),
    };
    const result = await run({
      epochs: scores.length,
      hooks: { evaluation: hook },
      checkpoints: { store, parts: { model, optimizer }, atEnd: false },
      ...more,
    });
    return { at, saved, hook, result, model };
  };

  it("evaluate in evaluation mode, have the best saved, and stop early", async () => {
    const told: string[] = [];
    let steps = 0;
    const { at, saved, hook, result, model } = await evaluating(
      [3, 2, 2, Number.NaN, 1],
      { patience: 2 },
      {
        onStep: () => void steps++,
        onEvaluation: ({ step, epoch, best, values }) =>
          told.push(
            `${step === steps ? "steps" : "too early,"} ${step}, epoch ${epoch}, best ${best}, loss ${values.loss}`,
          ),
      },
    );
    expect(at.map(({ step, isBest, isTraining }) => [step, isBest, isTraining])).toEqual([
      [5, true, false],
      [10, true, false],
      [15, false, false],
      [20, false, false],
    ]);
    expect(saved.map(({ step, best }) => [step, best])).toEqual([
      [5, true],
      [10, true],
    ]);
    expect(saved[1]?.parts.hooks).toEqual({ evaluation: { best: 2, bestStep: 10, worse: 0 } });
    expect(result).toMatchObject({ steps: 20, isStopped: true, isAborted: false });
    expect(told).toEqual([
      "steps 5, epoch 1, best true, loss 3",
      "steps 10, epoch 2, best true, loss 2",
      "steps 15, epoch 3, best false, loss 2",
      "steps 20, epoch 4, best false, loss null",
    ]);
    expect(hook.state).toEqual({ best: 2, bestStep: 10, worse: 2 });
    expect(model.isTraining).toBe(true);
  });

  it("go by any score, by any number of steps", async () => {
    const { at } = await evaluating([1, 2, 2.05, 3], {
      every: { steps: 5 },
      mode: "max",
      minDelta: 0.1,
      score: ({ loss }) => loss,
    });
    expect(at.map(({ isBest }) => isBest)).toEqual([true, true, false, true]);
  });

  it("are told of steps, recorded in them, and called after them, in their order", async () => {
    const { run } = training();
    const calls: string[] = [];
    await run({
      batches: () => sampleBatches(2, 16, 0),
      hooks: {
        first: {
          record: () => calls.push("first records"),
          afterStep: async ({ step, isEpochEnd }) => {
            await new Promise((resolve) => setTimeout(resolve, 1));
            calls.push(`first after ${step} ${isEpochEnd}`);
          },
        },
        second: {
          afterStep: ({ step }) => void calls.push(`second after ${step}`),
          onStep: ({ step }) => calls.push(`second told ${step}`),
        },
      },
    });
    expect(calls).toEqual([
      "first records",
      "first after 1 false",
      "second after 1",
      "first records",
      "first after 2 true",
      "second after 2",
      "second told 1",
      "second told 2",
    ]);
  });

  it("show the plan of the first step, once", async () => {
    const { run, runtime } = training();
    const shown: string[] = [];
    await run({
      batches: () => sampleBatches(3, 16, 0),
      hooks: { plan: dumpFirstPlan(runtime, (text) => shown.push(text)) },
    });
    expect(shown).toEqual([expect.stringMatching(/launch/)]);
  });

  it("leave each module in the mode that it had", async () => {
    const { run, model } = training();
    const [frozen, trained] = [model.layers[0], model.layers.at(-1)] as [Module, Module];
    frozen.eval();
    const modes: boolean[][] = [];
    await run({
      batches: () => sampleBatches(2, 16, 0),
      hooks: {
        evaluation: evaluateEvery({
          every: { steps: 1 },
          model,
          evaluate: async () => {
            modes.push([model, frozen, trained].map(({ isTraining }) => isTraining));
            return { loss: 1 };
          },
        }),
        after: {
          afterStep: () =>
            void modes.push([model, frozen, trained].map(({ isTraining }) => isTraining)),
        },
      },
    });
    const [evaluating, after] = [
      [false, false, false],
      [true, false, true],
    ];
    expect(modes).toEqual([evaluating, after, evaluating, after]);
  });

  it("that a signal ends early count no evaluation of a part", async () => {
    const results = [{ loss: 3 }, { loss: 1, isAborted: true }, { loss: 4 }];
    const { at, hook } = await evaluating([3, 1, 4], {
      evaluate: async () => results.shift() as { loss: number },
    });
    expect(at.map(({ step }) => step)).toEqual([5, 15]);
    expect(hook.state).toEqual({ best: 3, bestStep: 5, worse: 1 });
  });

  it.each([
    ["the last epoch", {}],
    ["the last step", { maxSteps: 7, epochs: 9 }],
    ["a hook", { hooks: { limit: { afterStep: (at: Training) => at.step === 3 && at.stop() } } }],
  ] as const)("are told of the end once, before it is saved: by %s", async (_, options) => {
    const calls: string[] = [];
    const { run, model, optimizer } = training();
    const store = memoryCheckpoints();
    const result = await run({
      ...(options as Partial<TrainOptions<Samples>>),
      hooks: {
        ...("hooks" in options && (options.hooks as object)),
        last: { onEnd: () => void calls.push("end"), onStep: () => {} },
      },
      checkpoints: {
        store: {
          newest: () => store.newest(),
          save: async ({ step }) => void calls.push(`save ${step}`),
        },
        parts: { model, optimizer },
        every: { steps: 1 },
      },
    });
    const { steps } = result;
    const saves = Array.from({ length: steps - 1 }, (_, i) => `save ${i + 1}`);
    expect(calls).toEqual([...saves, "end", `save ${steps}`]);
  });

  it("refuse results without a score", async () => {
    const failing = (options: object) =>
      training().run({
        hooks: { evaluation: evaluateEvery({ every: { steps: 1 }, ...options } as never) },
      });
    for (const nothing of [undefined, {}, { accuracy: 1 }])
      await expect(failing({ evaluate: async () => nothing })).rejects.toThrow(
        "evaluate() of evaluateEvery() gave no loss, which is a number",
      );
    await expect(failing({ evaluate: async () => ({}), score: () => "1" })).rejects.toThrow(
      'score() of evaluateEvery() gave "1": it must give a number',
    );
  });

  it("that training could not use are refused", async () => {
    const { run } = training();
    for (const [hook, text] of [
      [{}, "the hook mine has none of record, onCompile, onStep,"],
      [{ onstep: () => {} }, "the hook mine has none of record"],
      [{ onStep: 3 }, "onStep of the hook mine is 3: it must be a function"],
    ] as const)
      await expect(run({ hooks: { mine: hook as never } })).rejects.toThrow(text);
    const evaluate = async () => ({ loss: 1 });
    const options = { every: { steps: 1 }, evaluate };
    expect(() => evaluateEvery({ ...options, patient: 3 } as never)).toThrow(
      "evaluateEvery() has no option patient",
    );
    expect(() => evaluateEvery({ ...options, mode: "maximum" } as never)).toThrow(
      'mode is "maximum": it must be "min" or "max"',
    );
  });

  it("refuse what makes no sense", () => {
    const evaluate = async () => ({ loss: 1 });
    expect(() => evaluateEvery({ every: { steps: 0 }, evaluate })).toThrow('every is {"steps":0}');
    expect(() => evaluateEvery({ every: { epochs: 1 }, evaluate, patience: 0 })).toThrow(
      "patience is 0",
    );
    expect(() => evaluateEvery({ every: { epochs: 1 }, evaluate, minDelta: -1 })).toThrow(
      "minDelta is -1",
    );
    const hook = evaluateEvery({ every: { epochs: 1 }, evaluate });
    expect(() => hook.loadStateDict?.({ best: "1" } as never)).toThrow(
      "needs best, bestStep and worse",
    );
  });
});
