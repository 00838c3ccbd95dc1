import { describe, expect, it } from "vitest";
import { training } from "../test/class-training.js";
import { memoryCheckpoints } from "./checkpoint/memory-checkpoints.js";
import { evaluateEvery, type Training } from "./hooks.js";

describe("hooks of training that goes on", () => {
  it("repeat an evaluation that a signal ended", async () => {
    const store = memoryCheckpoints();
    /** Evaluates after each of three epochs; a signal ends the second evaluation of the first run. */
    const run = async (scores: readonly number[], isEnded: boolean) => {
      const told: string[] = [];
      const ending = new AbortController();
      const rest = [...scores];
      const { run, model, optimizer } = training();
      const result = await run({
        epochs: 3,
        ...(isEnded && { signal: ending.signal }),
        onEvaluation: ({ step, epoch, best, values }) =>
          told.push(`step ${step}, epoch ${epoch}, best ${best}, loss ${values.loss}`),
        hooks: {
          evaluation: evaluateEvery({
            every: { epochs: 1 },
            model,
            evaluate: async () => {
              const loss = rest.shift() as number;
              if (!isEnded || rest.length > 0) return { loss };
              ending.abort();
              return { loss, isAborted: true };
            },
          }),
        },
        checkpoints: { store, parts: { model, optimizer }, resume: "auto" },
      });
      return { told, result };
    };
    const first = await run([3, 9], true);
    expect(first.result).toMatchObject({ steps: 10, isAborted: true });
    expect(first.told).toEqual(["step 5, epoch 1, best true, loss 3"]);
    expect(await store.best()).toMatchObject({ step: 5 });
    const second = await run([2, 4], false);
    expect(second.result).toMatchObject({ steps: 15, resumedAt: 10 });
    expect(second.told).toEqual([
      "step 10, epoch 2, best true, loss 2",
      "step 15, epoch 3, best false, loss 4",
    ]);
    expect(await store.best()).toMatchObject({ step: 10 });
  });

  it("say that training was ended within the evaluation after the last step, and save what resuming repeats", async () => {
    const store = memoryCheckpoints();
    const told: number[] = [];
    /** Evaluates after each of two epochs. The signal fires in the evaluation with this number. */
    const run = async (endedAt: number) => {
      const ending = new AbortController();
      let evaluations = 0;
      const { run, model, optimizer } = training();
      const { steps, isAborted } = await run({
        ...{ epochs: 2, signal: ending.signal },
        onEvaluation: ({ step }) => told.push(step),
        hooks: {
          evaluation: evaluateEvery({
            every: { epochs: 1 },
            model,
            // The first is the best, so that no later one is saved as that.
            evaluate: async () => {
              const isEnded = ++evaluations === endedAt;
              if (isEnded) ending.abort();
              return { loss: told.length, ...(isEnded && { isAborted: true }) };
            },
          }),
        },
        checkpoints: { store, parts: { model, optimizer }, resume: "auto" },
      });
      return { steps, isAborted, evaluations };
    };
    expect(await run(2)).toEqual({ steps: 10, isAborted: true, evaluations: 2 });
    expect(told).toEqual([5]);
    expect(await run(0)).toEqual({ steps: 10, isAborted: false, evaluations: 1 });
    expect(told).toEqual([5, 10]);
    // What was repeated is saved.
    expect(await run(0)).toMatchObject({ steps: 10, evaluations: 0 });
    expect(told).toEqual([5, 10]);
  });

  it("decide anew whether training has stopped", async () => {
    const store = memoryCheckpoints();
    const run = async (patience: number, other: boolean) => {
      const { run, model, optimizer } = training();
      const { steps, isStopped } = await run({
        epochs: 5,
        hooks: {
          evaluation: evaluateEvery({
            ...{ every: { epochs: 1 }, patience },
            evaluate: async () => ({ loss: 1 }),
          }),
          ...(other && {
            limit: {
              afterStep: (at: Training) => {
                if (at.step === 17) at.stop();
              },
            },
          }),
        },
        checkpoints: { store, parts: { model, optimizer }, resume: "auto" },
      });
      return { steps, isStopped };
    };
    expect(await run(1, false)).toEqual({ steps: 10, isStopped: true });
    expect(await run(1, false)).toEqual({ steps: 10, isStopped: true });
    expect(await run(9, true)).toEqual({ steps: 17, isStopped: true });
    // A hook that cannot decide anew has ended training for good.
    expect(await run(9, true)).toEqual({ steps: 17, isStopped: true });
  });
});
