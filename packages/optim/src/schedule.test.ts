import { describe, expect, it } from "vitest";
import { constant, cosine, linearWarmup, oneCycle, type Schedule } from "./schedule.js";

const rates = (schedule: Schedule, steps: number): number[] =>
  Array.from({ length: steps }, (_, step) => schedule(step));

/** torch/optim/lr_scheduler.py, OneCycleLR.get_lr with its phases, transcribed. */
function torchOneCycle(maxLr: number, totalSteps: number, pctStart: number, divFactor: number) {
  const initialLr = maxLr / divFactor;
  const phases = [
    { endStep: pctStart * totalSteps - 1, startLr: initialLr, endLr: maxLr },
    { endStep: totalSteps - 1, startLr: maxLr, endLr: initialLr / 1e4 },
  ];
  return Array.from({ length: totalSteps }, (_, step) => {
    let startStep = 0;
    for (const [i, { endStep, startLr, endLr }] of phases.entries()) {
      if (step <= endStep || i === phases.length - 1) {
        const cosOut = Math.cos((Math.PI * (step - startStep)) / (endStep - startStep)) + 1;
        return endLr + ((startLr - endLr) / 2) * cosOut;
      }
      startStep = endStep;
    }
    throw new Error("unreachable");
  });
}

const relativeErrors = (got: readonly number[], want: readonly number[]): number =>
  Math.max(...want.map((value, i) => Math.abs((got[i] as number) - value) / Math.abs(value)));

describe("oneCycle", () => {
  it("gives what torch prints", () => {
    const printed = [
      0.0003999999999999993, 0.0052, 0.01, 0.009504846320134737, 0.008117456539497631,
      0.0061126202193628925, 0.003887419780637108, 0.00188258346050237, 0.0004951936798652628, 4e-8,
    ];
    expect(
      relativeErrors(rates(oneCycle({ maxLr: 0.01, totalSteps: 10 }), 10), printed),
    ).toBeLessThan(1e-12);
  });

  it("follows torch's phases for any length and division", () => {
    let worst = 0;
    for (const totalSteps of [2, 3, 7, 100, 469, 1407])
      for (const pctStart of [0.05, 0.3, 0.5, 0.9])
        for (const divFactor of [10, 25]) {
          const schedule = oneCycle({ maxLr: 0.3, totalSteps, pctStart, divFactor });
          // torch divides by zero where the rise would have no length.
          if (pctStart * totalSteps === 1) continue;
          const want = torchOneCycle(0.3, totalSteps, pctStart, divFactor);
          worst = Math.max(worst, relativeErrors(rates(schedule, totalSteps), want));
        }
    expect(worst).toBeLessThan(1e-12);
  });

  it("stays at its end, and refuses what is no schedule", () => {
    const schedule = oneCycle({ maxLr: 1, totalSteps: 5 });
    expect(schedule(1000)).toBe(schedule(4));
    expect(schedule.totalSteps).toBe(5);
    expect(() => oneCycle({ maxLr: 1, totalSteps: 0 })).toThrow("totalSteps is 0");
    expect(() => oneCycle({ maxLr: 1, totalSteps: 5, pctStart: 2 })).toThrow("pctStart is 2");
  });
});

describe("other schedules", () => {
  it("constant", () => expect(rates(constant(0.5), 3)).toEqual([0.5, 0.5, 0.5]));

  it("linearWarmup rises to its rate and stays", () => {
    const schedule = linearWarmup({ lr: 1, warmupSteps: 4, startFactor: 0.2 });
    const want = [0.2, 0.4, 0.6, 0.8, 1, 1, 1];
    expect(relativeErrors(rates(schedule, 7), want)).toBeLessThan(1e-15);
  });

  it("cosine falls to its minimum, after a warm-up if asked", () => {
    const plain = [1, 0.8535533905932737, 0.5, 0.14644660940672624].map((x) => 0.1 + 0.9 * x);
    const schedule = cosine({ lr: 1, totalSteps: 4, minLr: 0.1 });
    expect(relativeErrors(rates(schedule, 6), [...plain, 0.1, 0.1])).toBeLessThan(1e-15);
    const warm = cosine({ lr: 1, totalSteps: 6, minLr: 0.1, warmupSteps: 2 });
    expect(relativeErrors(rates(warm, 7), [0.5, 1, ...plain, 0.1])).toBeLessThan(1e-15);
    expect(() => cosine({ lr: 1, totalSteps: 4, warmupSteps: 4 })).toThrow("warmupSteps is 4");
  });
});
