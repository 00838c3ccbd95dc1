import { getEventListeners } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { cpuRuntime } from "@halfstep/tensor";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { training } from "../test/class-training.js";
import { classifier, logitsOf, lossOf, type Samples, sampleBatches } from "../test/classes.js";
import { memoryCheckpoints } from "./checkpoint/memory-checkpoints.js";
import { evaluate } from "./evaluate.js";
import { evaluateEvery, type TrainingHook } from "./hooks.js";

const unhandled: unknown[] = [];
const listen = (reason: unknown): unknown => unhandled.push(reason);
beforeEach(() => void process.on("unhandledRejection", listen));
afterEach(async () => {
  await sleep(20);
  process.off("unhandledRejection", listen);
  expect(unhandled.splice(0)).toEqual([]);
});

const never = (): Promise<never> => new Promise(() => {});

/** A loader of which the `count`-th wait over all epochs fires the signal, and then does what `stall` does. */
const stalling = (count: number, controller: AbortController, stall: () => Promise<unknown>) => {
  let waits = 0;
  const wait = async (): Promise<void> => {
    if (++waits !== count) return;
    setTimeout(() => controller.abort(), 1);
    await stall();
  };
  return async function* (epoch: number): AsyncGenerator<Samples> {
    for (const batch of sampleBatches(5, 16, epoch)) {
      await wait();
      yield batch;
    }
    await wait();
  };
};

const cases: readonly (readonly [
  name: string,
  stall: (signal: AbortSignal) => () => Promise<unknown>,
])[] = [
  ["never answers", () => never],
  ["obeys the same signal", (signal) => () => sleep(60_000, undefined, { signal })],
  [
    "fails later",
    () => async () => {
      await sleep(150);
      throw new Error("the connection was reset");
    },
  ],
];

describe.each(cases)("a loader that %s when the signal comes", (_, stall) => {
  it("ends training with the steps so far, and a checkpoint", async () => {
    const controller = new AbortController();
    const store = memoryCheckpoints();
    const { run, model, optimizer, told } = training();
    let ends = 0;
    const result = await run({
      batches: stalling(3, controller, stall(controller.signal)),
      signal: controller.signal,
      hooks: { end: { onEnd: () => void ends++ } },
      checkpoints: { store, parts: { model, optimizer } },
    });
    expect(result).toMatchObject({ steps: 2, isAborted: true });
    expect(told.map(({ step }) => step)).toEqual([1, 2]);
    expect((await store.newest()).checkpoint?.step).toBe(2);
    expect(ends).toBe(1);
    expect(getEventListeners(controller.signal, "abort")).toEqual([]);
  });

  it("ends an evaluation with the figures so far", async () => {
    const runtime = cpuRuntime();
    const model = classifier(runtime);
    const run = (wait: number) => {
      const controller = new AbortController();
      return evaluate<Samples>({
        ...{ runtime, precision: "float32", signal: controller.signal },
        logits: (batch) => logitsOf(model, batch),
        labels: ({ labels }) => labels,
        batches: stalling(wait, controller, stall(controller.signal))(0),
      });
    };
    expect(await run(3)).toMatchObject({ samples: 32, isAborted: true });
    expect(await run(1)).toMatchObject({ samples: 0, loss: Number.NaN, isAborted: true });
  });
});

/** Trains for two epochs, with everything that is called after a step; a stalled loader interrupts it at each of these waits. */
const inPieces = async (accumulate: number, waits: readonly number[]) => {
  const store = memoryCheckpoints({ keep: 100 });
  const calls: string[] = [];
  const losses: (number | null)[] = [];
  for (let piece = 0; ; piece++) {
    const { run, model, optimizer, weights, told } = training();
    const controller = new AbortController();
    let after = 0;
    const counting: TrainingHook = {
      afterStep({ step, epochs, isEpochEnd }) {
        calls.push(`step ${step}, epochs ${epochs}, end ${isEpochEnd}`);
        after++;
      },
      stateDict: () => ({ after }),
      loadStateDict: (state: { readonly after: number }) => {
        after = state.after;
      },
    };
    const result = await run({
      ...{ epochs: 2, accumulate, signal: controller.signal },
      batches: stalling(waits[piece] ?? Number.POSITIVE_INFINITY, controller, never),
      onEvaluation: ({ step, values }) => calls.push(`evaluated ${values.loss} at ${step}`),
      hooks: {
        counting,
        evaluation: evaluateEvery({
          ...{ every: { epochs: 1 }, model },
          evaluate: async () => ({ loss: (await weights())[0] as number }),
        }),
      },
      checkpoints: { store, parts: { model, optimizer }, resume: "auto" },
    });
    losses.push(...told.map(({ loss }) => loss));
    if (piece < waits.length) {
      expect(result.isAborted).toBe(true);
      continue;
    }
    expect(result.isAborted).toBe(false);
    const { checkpoint } = await store.newest();
    return { steps: result.steps, weights: await weights(), calls, losses, after, checkpoint };
  }
};

// Of the six waits of an epoch the first comes before its first batch, the last at its end.
it.each([
  [1, 1],
  [1, 2],
  [1, 4],
  [1, 6],
  [1, 7],
  [1, 12],
  [2, 2],
  [2, 3],
  [2, 6],
])("goes on with the bits of an unbroken run: accumulate %i, wait %i", async (accumulate, wait) => {
  const unbroken = await inPieces(accumulate, []);
  expect(await inPieces(accumulate, [wait])).toEqual(unbroken);
  // The last batches are skipped again, and a loader may stall there, too.
  if (wait === 6) expect(await inPieces(accumulate, [6, 3, 6])).toEqual(unbroken);
});

it("keeps the checkpoint of a micro-step where it stalls before the next one", async () => {
  const store = memoryCheckpoints();
  const run = (batches: (epoch: number) => AsyncIterable<Samples>, controller: AbortController) => {
    const { run, model, optimizer } = training();
    return run({
      ...{ batches, accumulate: 2, signal: controller.signal },
      loss: (batch) => {
        controller.abort();
        return lossOf(model, batch);
      },
      checkpoints: { store, parts: { model, optimizer }, resume: "auto" },
    });
  };
  await run(stalling(99, new AbortController(), never), new AbortController());
  expect((await store.newest()).checkpoint).toMatchObject({ step: 0, microStep: 1 });
  const controller = new AbortController();
  const result = await run(stalling(1, controller, never), controller);
  expect(result).toMatchObject({ steps: 0, isAborted: true });
  expect((await store.newest()).checkpoint).toMatchObject({ step: 0, microStep: 1 });
});

describe("a loader", () => {
  it("that fails without a signal rejects train(), as does one that fails before it", async () => {
    const { run, told } = training();
    const failure = new Error("no such file");
    async function* failing(): AsyncGenerator<Samples> {
      yield* sampleBatches(2, 16, 0);
      throw failure;
    }
    const { signal } = new AbortController();
    await expect(run({ batches: failing, signal })).rejects.toBe(failure);
    expect(told).toHaveLength(2);
  });

  it("that does not close after the signal holds nothing up", async () => {
    const controller = new AbortController();
    const { run } = training();
    const result = await run({
      signal: controller.signal,
      batches: () => ({
        [Symbol.asyncIterator]: () => {
          const batches = sampleBatches(5, 16, 0)[Symbol.iterator]();
          return { next: async () => batches.next(), return: never };
        },
      }),
      hooks: { stop: { afterStep: () => controller.abort() } },
    });
    expect(result).toMatchObject({ steps: 1, isAborted: true });
  });

  it("that answers after the signal, but soon, counts: hooks are called after the step", async () => {
    const controller = new AbortController();
    const { run } = training();
    const calls: unknown[] = [];
    const result = await run({
      signal: controller.signal,
      batches: async function* () {
        yield* sampleBatches(1, 16, 0);
        controller.abort();
        await sleep(1);
      },
      hooks: { calls: { afterStep: ({ isEpochEnd }) => void calls.push(isEpochEnd) } },
    });
    expect(calls).toEqual([true]);
    expect(result).toMatchObject({ steps: 1, isAborted: false });
  });

  it("of a rank is awaited, because all ranks end after the same step", async () => {
    const controller = new AbortController();
    const { run } = training();
    const calls: number[] = [];
    const slow = stalling(2, controller, () => sleep(200));
    const result = await run({
      ...{ signal: controller.signal, batches: slow },
      hooks: { rank: { needsEqualSteps: true, afterStep: ({ step }) => void calls.push(step) } },
    });
    expect([calls, result.isAborted]).toEqual([[1], true]);
  });

  it("gives something that is iterable", async () => {
    const wrong = training().run({ batches: async () => sampleBatches(1, 16, 0) } as never);
    await expect(wrong).rejects.toThrow(
      "batches is [object Promise]: it must be an iterable of batches, such as an array",
    );
  });
});
