import { describe, expect, test } from "vitest";
import { accumulationWindow, float32Primitives, GradScaler, scaledValue } from "../src/index.js";
import { mistakeOf } from "./mistake-of.js";
import { Sgd } from "./sgd.js";
import { train } from "./train.js";

const one = (): Float32Array => Float32Array.of(1);

describe("an accumulation window", () => {
  test("gives the gradients of the mean, for samples and tokens of any batch size", async () => {
    const windows = [
      { size: { microSteps: 4 }, counts: [[], [], [], []], mean: (1 + 2 + 3 + 10) / 4 },
      { size: { samples: 8 }, counts: [[1], [1], [4], [2]], mean: (1 + 2 + 12 + 20) / 8 },
      { size: { tokens: 16 }, counts: [[2], [2], [4], [8]], mean: (2 + 4 + 12 + 80) / 16 },
    ];
    for (const enabled of [true, false]) {
      for (const { size, counts, mean } of windows) {
        const scaler = new GradScaler(float32Primitives, { enabled });
        const optimizer = new Sgd([0]);
        const window = accumulationWindow(scaler, optimizer, size as { samples: number });
        for (let round = 1; round <= 2; round += 1) {
          for (const [i, gradient] of [1, 2, 3, 10].entries()) {
            expect(window.isFull).toBe(false);
            const scaled = window.scale(one(), ...((counts[i] ?? []) as [number]));
            optimizer.backward([gradient], scaledValue(scaled));
          }
          expect([window.isFull, window.remaining]).toEqual([true, 0]);
          window.step();
          expect([optimizer.parameters[0], optimizer.gradient]).toEqual([-mean * round, undefined]);
        }
        expect((await scaler.drain()).length).toBe(enabled ? 2 : 0);
      }
    }
  });

  test("unscales, clips, steps and updates, in that order", async () => {
    const scaler = new GradScaler(float32Primitives, { initScale: 1024 });
    const optimizers = [new Sgd([0]), new Sgd([0])];
    const window = accumulationWindow(scaler, optimizers, { microSteps: 2 });
    const seen: number[] = [];
    for (let i = 0; i < 2; i += 1) {
      for (const scaled of window.scale([one(), Float32Array.of(2)])) {
        for (const each of optimizers) each.backward([1], scaledValue(scaled));
      }
    }
    window.step({
      clip: ({ gradient }) => {
        seen.push(gradient?.[0] as number);
        gradient?.fill(0.5);
      },
    });
    expect(seen).toEqual([3, 3]);
    expect(optimizers.map(({ parameters }) => parameters[0])).toEqual([-0.5, -0.5]);
    expect(await scaler.drain()).toMatchObject([
      { step: 1, status: "applied", optimizers: ["applied", "applied"] },
    ]);
  });

  test("refuses what would leave gradients unclipped, and micro-batches without their number", () => {
    const window = accumulationWindow(new GradScaler(float32Primitives), new Sgd([0]), {
      microSteps: 1,
    });
    const optimizer = new Sgd([0]);
    window.scale(one());
    const clip = () => optimizer.gradient?.fill(0);
    for (const options of [{ clipp: clip }, clip, { clip: 1 }])
      expect(() => window.step(options as { clip: typeof clip })).toThrow(
        "window.step() takes { clip: (optimizer) => … } or nothing",
      );
    const samples = accumulationWindow(new GradScaler(float32Primitives), optimizer, {
      samples: 8,
    });
    // @ts-expect-error no number of samples
    expect(() => samples.scale(one())).toThrow(
      "a micro-step has no number of samples: give their number.",
    );
  });

  test("keeps everyone else out while it is open, and lets them in again", () => {
    const scaler = new GradScaler(float32Primitives);
    const optimizer = new Sgd([0]);
    const window = accumulationWindow(scaler, optimizer, { microSteps: 2 });
    const other = accumulationWindow(scaler, optimizer, { samples: 8 });
    optimizer.backward([1], scaledValue(window.scale(one())));
    const calls: (() => unknown)[] = [
      () => scaler.scale(one()),
      () => scaler.unscale(optimizer),
      () => scaler.clip(optimizer, () => {}),
      () => scaler.step(optimizer),
      () => scaler.update(),
      () => other.scale(one(), 8),
    ];
    expect(calls.map((call) => mistakeOf(call).split(":")[0])).toEqual(
      calls.map(() => "open-window"),
    );
    expect(mistakeOf(() => window.step())).toMatch(
      /^window-not-full: the window has seen 1 of 2 micro-steps/,
    );
    optimizer.backward([1], scaledValue(window.scale(one())));
    expect(mistakeOf(() => window.scale(one()))).toMatch(
      /^window-overfull: 1 micro-steps do not fit: the window is for 2 and has seen 2/,
    );
    window.step();
    train(scaler, optimizer, [1]);
    expect(optimizer.parameters[0]).toBe(-2);
    for (const count of [-1, Number.NaN]) {
      expect(() => other.scale(one(), count)).toThrow(`a micro-step has ${count} samples`);
    }
    for (const size of [{ microSteps: 0 }, { microSteps: 1.5 }]) {
      expect(() => accumulationWindow(scaler, optimizer, size)).toThrow(RangeError);
    }
    expect(() => accumulationWindow(scaler, optimizer, { samples: Number.NaN })).toThrow(
      /^samples is NaN/,
    );
    for (const size of [{ steps: 4 }, { microSteps: 4, tokens: 4 }, {}]) {
      expect(() =>
        accumulationWindow(scaler, optimizer, size as { readonly microSteps: number }),
      ).toThrow(
        `"${Object.keys(size).join(" and ")}" is no size of a window: choose one of microSteps, samples, tokens.`,
      );
    }
    const copy = { scale: () => {} } as unknown as typeof scaler;
    expect(() => accumulationWindow(copy, optimizer, { microSteps: 1 })).toThrow(
      "accumulationWindow takes a GradScaler of the same copy of @halfstep/grad-scaler",
    );
  });

  test("can be given up after a micro-step that adds nothing", () => {
    const scaler = new GradScaler(float32Primitives);
    const window = accumulationWindow(scaler, new Sgd([0]), { samples: 2 });
    window.scale(one(), 0);
    window.reset();
    scaler.scale(one());
  });

  test("can be given up, and leaves no flag behind", async () => {
    const scaler = new GradScaler(float32Primitives, { initScale: 8, gradientNorm: true });
    const optimizer = new Sgd([0]);
    const window = accumulationWindow(scaler, optimizer, { microSteps: 1 });
    optimizer.backward([Number.NaN], scaledValue(window.scale(Float32Array.of(Number.NaN))));
    const clip = (): void => {
      throw new Error("interrupted");
    };
    expect(() => window.step({ clip })).toThrow("interrupted");
    window.reset();
    window.reset();
    expect([optimizer.gradient, window.remaining]).toEqual([undefined, 1]);
    train(scaler, optimizer, [1]);
    expect(await scaler.drain()).toMatchObject([
      { step: 1, status: "applied", gradientNorm: 1, scaleAfter: 8 },
    ]);
  });
});
