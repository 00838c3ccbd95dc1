import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import {
  type AmpPrimitives,
  float32Primitives,
  GradScaler,
  type GradScalerOptions,
  ScaleCollapseError,
  type StepOutcome,
  scaledValue,
} from "../src/index.js";
import { Sgd } from "./sgd.js";

/** A scaler with an optimizer, a counter of reads, and a read that can fail. */
function training(options: GradScalerOptions = {}) {
  const device = { reads: 0, lost: undefined as Error | undefined };
  const primitives: AmpPrimitives<Float32Array> = {
    ...float32Primitives,
    read: async (buffer) => {
      device.reads += 1;
      if (device.lost) throw device.lost;
      return buffer.slice();
    },
  };
  const scaler = new GradScaler(primitives, options);
  const optimizer = new Sgd([0]);
  const train = (overflow = false): void => {
    optimizer.zeroGrad();
    optimizer.backward([overflow ? Number.NaN : 1], scaledValue(scaler.scale(Float32Array.of(1))));
    scaler.step(optimizer);
    scaler.update();
  };
  const steps = (count: number): void => {
    for (let i = 0; i < count; i += 1) train();
  };
  return { device, scaler, optimizer, train, steps };
}

const stepsOf = (outcomes: readonly StepOutcome[]): number[] => outcomes.map(({ step }) => step);
const range = (from: number, to: number): number[] =>
  Array.from({ length: to - from + 1 }, (_, i) => from + i);

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

test('the scale of preset "torch" falls to 0 and trains on, as in torch; only that it has is told', async () => {
  const outcomes = async (options: GradScalerOptions) => {
    const { scaler, optimizer, train } = training({
      ...{ preset: "torch", initScale: 2 ** -148, outcomeSchedule: false, ...options },
    });
    for (const overflow of [true, true, true]) train(overflow);
    const drained = await scaler.drain().catch((error: unknown) => error);
    const before = [...optimizer.parameters];
    train();
    const { scale } = await scaler.stateDict();
    return { drained, scale, before, after: [...optimizer.parameters] };
  };
  const told = await outcomes({});
  expect(told.drained).toBeInstanceOf(ScaleCollapseError);
  expect(told.drained).toMatchObject({ step: 3, scale: 0, skips: 3 });
  const silent = await outcomes({ raiseAtFloor: false });
  expect(stepsOf(silent.drained as readonly StepOutcome[])).toEqual([1, 2, 3]);
  // Seen in torch 2.13 with the same scales: gradients are 0, finite, and then multiplied by 1 / 0.
  for (const { scale, before, after } of [told, silent])
    expect([scale, before, after]).toEqual([0, [0], [Number.NaN]]);
});

describe("drain", () => {
  test("returns each outcome once, in order, and reads only when there is something", async () => {
    const { scaler, steps, device } = training();
    expect(await scaler.drain()).toEqual([]);
    steps(5);
    expect(stepsOf(await scaler.drain())).toEqual([1, 2, 3, 4, 5]);
    expect(await scaler.drain()).toEqual([]);
    steps(2);
    expect(stepsOf(await scaler.drain())).toEqual([6, 7]);
    expect(device.reads).toBe(2);
  });

  test("called twice at once returns nothing twice", async () => {
    const { scaler, steps } = training();
    steps(3);
    const first = scaler.drain();
    steps(3);
    const both = await Promise.all([first, scaler.drain()]);
    expect(stepsOf(both.flat()).sort((a, b) => a - b)).toEqual(range(1, 6));
  });

  test("leaves steps that come while it reads to the next one", async () => {
    const { scaler, steps } = training();
    steps(2);
    const reading = scaler.drain();
    // Let the read begin.
    await Promise.resolve();
    steps(2);
    const outcomes = [...(await reading), ...(await scaler.drain())];
    expect(stepsOf(outcomes)).toEqual([1, 2, 3, 4]);
    expect(outcomes.map(({ lostBefore }) => lostBefore)).toEqual([0, 0, 0, 0]);
  });

  test("reports how many outcomes the ring has lost, and invents none", async () => {
    const { scaler, steps, train } = training({ outcomeSchedule: false });
    steps(3);
    expect(stepsOf(await scaler.drain())).toEqual([1, 2, 3]);
    for (const count of [256, 257, 300, 1000]) {
      const { step: before } = (await scaler.stateDict()) as { step: number };
      steps(count - 1);
      train(true);
      const outcomes = await scaler.drain();
      const kept = Math.min(count, 256);
      expect(stepsOf(outcomes)).toEqual(range(before + count - kept + 1, before + count));
      expect(outcomes.map(({ lostBefore }) => lostBefore)).toEqual([
        count - kept,
        ...new Array(kept - 1).fill(0),
      ]);
      expect(outcomes.at(-1)?.status).toBe("skipped");
    }
  });

  test("rejects where the device does, and gets the outcomes when it works again", async () => {
    const { scaler, steps, device } = training();
    steps(2);
    device.lost = new Error("device lost");
    await expect(scaler.drain()).rejects.toThrow("device lost");
    device.lost = undefined;
    expect(stepsOf(await scaler.drain())).toEqual([1, 2]);
  });
});

describe("the schedule", () => {
  test("reads after 16 steps, in a later task", async () => {
    const { scaler, steps, device } = training();
    steps(15);
    await vi.advanceTimersByTimeAsync(0);
    expect(device.reads).toBe(0);
    steps(1);
    expect(device.reads).toBe(0);
    await vi.advanceTimersByTimeAsync(0);
    expect(device.reads).toBe(1);
    await vi.advanceTimersByTimeAsync(10_000);
    expect(device.reads).toBe(1);
    steps(600);
    await vi.advanceTimersByTimeAsync(0);
    expect(device.reads).toBe(2);
    expect((await scaler.drain()).reduce((sum, each) => sum + 1 + each.lostBefore, 0)).toBe(616);
  });

  test("reads 250 ms after the first unread step", async () => {
    const { scaler, steps, device } = training();
    steps(1);
    await vi.advanceTimersByTimeAsync(200);
    steps(1);
    await vi.advanceTimersByTimeAsync(49);
    expect(device.reads).toBe(0);
    await vi.advanceTimersByTimeAsync(1);
    expect(device.reads).toBe(1);
    expect(stepsOf(await scaler.drain())).toEqual([1, 2]);
  });

  test("keeps 1,000 outcomes for one drain when the loop awaits", async () => {
    const { scaler, steps } = training();
    for (let i = 0; i < 1000; i += 1) {
      steps(1);
      await vi.advanceTimersByTimeAsync(1);
    }
    const outcomes = await scaler.drain();
    expect(stepsOf(outcomes)).toEqual(range(1, 1000));
    expect(outcomes.filter(({ lostBefore }) => lostBefore > 0)).toEqual([]);
  });

  test("can be turned off", async () => {
    const { steps, device } = training({ outcomeSchedule: false });
    steps(100);
    await vi.advanceTimersByTimeAsync(10_000);
    expect(device.reads).toBe(0);
  });

  test("a failed read is no unhandled rejection", async () => {
    const { scaler, steps, device } = training();
    device.lost = new Error("device lost");
    steps(20);
    await vi.advanceTimersByTimeAsync(300);
    expect(device.reads).toBeGreaterThan(0);
    await expect(scaler.drain()).rejects.toThrow("device lost");
  });
});

describe("outcomes", () => {
  test("stream to every listener at its own pace, whoever reads them", async () => {
    const { scaler, steps } = training();
    steps(3);
    const streams = [scaler.outcomes(), scaler.outcomes()];
    const seen: number[][] = [[], []];
    const listening = streams.map(async (stream, i) => {
      for await (const { step } of stream) {
        seen[i]?.push(step);
        if (step === 20) break;
      }
    });
    await vi.advanceTimersByTimeAsync(250);
    expect(seen).toEqual([range(1, 3), range(1, 3)]);
    expect(stepsOf(await scaler.drain())).toEqual([1, 2, 3]);
    steps(17);
    await scaler.drain();
    await Promise.all(listening);
    expect(seen).toEqual([range(1, 20), range(1, 20)]);
  });

  test("can be left while they wait", async () => {
    const stream = training().scaler.outcomes();
    const waiting = stream.next();
    await stream.return();
    expect(await waiting).toEqual({ done: true, value: undefined });
    expect(await stream.next()).toEqual({ done: true, value: undefined });
  });

  test("end with the error where reading fails", async () => {
    const { scaler, steps, device } = training();
    const stream = scaler.outcomes();
    const waiting = stream.next();
    device.lost = new Error("device lost");
    const refused = expect(waiting).rejects.toThrow("device lost");
    steps(1);
    await vi.advanceTimersByTimeAsync(250);
    await refused;
  });

  test("a step that was unscaled and never taken is skipped without overflow", async () => {
    const scaler = new GradScaler(float32Primitives);
    const optimizer = new Sgd([0]);
    optimizer.backward([1], scaledValue(scaler.scale(Float32Array.of(1))));
    scaler.unscale(optimizer);
    scaler.update();
    expect(await scaler.drain()).toMatchObject([{ status: "skipped", foundInf: false }]);
  });
});

describe("a scale that collapses", () => {
  const options = { initScale: 4, minScale: 1, growthInterval: 1 };

  test("rejects drain at the first skip at the floor, with the outcomes, and once", async () => {
    const { scaler, train } = training(options);
    for (const overflow of [false, true, true, true, true, true]) train(overflow);
    const error = await scaler.drain().catch((error: unknown) => error);
    expect(error).toBeInstanceOf(ScaleCollapseError);
    const collapse = error as ScaleCollapseError;
    expect([collapse.step, collapse.scale, collapse.skips]).toEqual([5, 1, 4]);
    expect(stepsOf(collapse.outcomes)).toEqual([1, 2, 3, 4, 5]);
    expect(collapse.message).toMatch(/^step 5 was skipped at the smallest loss scale allowed \(1;/);
    expect(stepsOf(await scaler.drain())).toEqual([6]);
    train(true);
    expect(stepsOf(await scaler.drain())).toEqual([7]);
    for (const overflow of [false, true, true]) train(overflow);
    await expect(scaler.drain()).rejects.toMatchObject({ step: 10, skips: 2 });
  });

  test("ends streams after the skipped step, and waits for a drain if only the schedule read it", async () => {
    const { scaler, train } = training({ ...options, initScale: 1 });
    const stream = scaler.outcomes();
    train(true);
    await vi.advanceTimersByTimeAsync(250);
    expect((await stream.next()).value).toMatchObject({ step: 1, status: "skipped" });
    await expect(stream.next()).rejects.toBeInstanceOf(ScaleCollapseError);
    expect(await stream.next()).toEqual({ done: true, value: undefined });
    await expect(scaler.drain()).rejects.toBeInstanceOf(ScaleCollapseError);
  });

  test("does not exist for a static scale", async () => {
    const { scaler, train } = training({ preset: "static", initScale: 128, minScale: 128 });
    train(true);
    expect(await scaler.drain()).toMatchObject([{ status: "skipped", scaleAfter: 128 }]);
  });
});
