import { describe, expect, it } from "vitest";
import { AdamW, type AdamWOptions, oneCycle, SGD, type SGDOptions } from "../src/index.js";
import { noise, Parameters, targets, total } from "./targets.js";

const steps = 240;

/** Steps whose gradients are not finite. The reference does not even see them. */
const isSkipped = (step: number): boolean => step === 0 || step % 37 === 5;

// Gradients that point at a goal, with noise, and some that are always zero.
const goal = noise(total, 100).map((v) => v * 2);
const gradient = (values: readonly number[], step: number): number[] => {
  const jitter = noise(total, step);
  return values.map((v, i) =>
    i % 13 === 5 ? 0 : Math.fround((v - (goal[i] as number)) * 0.5 + 0.1 * (jitter[i] as number)),
  );
};

type Step = (p: number, g: number, i: number, t: number, lr: number) => number;

/** torch's algorithm boxes in float64, one parameter at a time; `t` counts applied steps from 1. */
function adamwReference({
  betas = [0.9, 0.999],
  eps = 1e-8,
  weightDecay = 0.01,
  maximize,
  amsgrad,
}: AdamWOptions): Step {
  const m = new Float64Array(total);
  const v = new Float64Array(total);
  const largest = new Float64Array(total);
  return (p, gradient, i, t, lr) => {
    const g = maximize ? -gradient : gradient;
    const decayed = p - lr * weightDecay * p;
    m[i] = betas[0] * (m[i] as number) + (1 - betas[0]) * g;
    v[i] = betas[1] * (v[i] as number) + (1 - betas[1]) * g * g;
    largest[i] = Math.max(largest[i] as number, v[i]);
    const mHat = m[i] / (1 - betas[0] ** t);
    const vHat = ((amsgrad ? largest[i] : v[i]) as number) / (1 - betas[1] ** t);
    return decayed - (lr * mHat) / (Math.sqrt(vHat) + eps);
  };
}

function sgdReference({
  momentum = 0,
  dampening = 0,
  weightDecay = 0,
  nesterov,
  maximize,
}: SGDOptions): Step {
  const buffer = new Float64Array(total);
  return (p, gradient, i, t, lr) => {
    const g = (maximize ? -gradient : gradient) + weightDecay * p;
    if (momentum === 0) return p - lr * g;
    buffer[i] = t === 1 ? g : momentum * (buffer[i] as number) + (1 - dampening) * g;
    return p - lr * (nesterov ? g + momentum * buffer[i] : buffer[i]);
  };
}

const oneCycleRate = oneCycle({ maxLr: 0.03, totalSteps: 200 });

const cases: readonly [string, { AdamW: AdamWOptions } | { SGD: SGDOptions }][] = [
  ["AdamW", { AdamW: { lr: 0.01 } }],
  ["AdamW, one cycle", { AdamW: { lr: oneCycleRate, weightDecay: 0.1, betas: [0.8, 0.99] } }],
  ["AdamW, AMSGrad, maximize", { AdamW: { lr: 0.003, amsgrad: true, maximize: true, eps: 1e-4 } }],
  ["SGD", { SGD: { lr: 0.05, weightDecay: 1e-2 } }],
  ["SGD, momentum, dampening", { SGD: { lr: 0.02, momentum: 0.9, dampening: 0.3 } }],
  [
    "SGD, Nesterov, one cycle",
    { SGD: { lr: oneCycleRate, momentum: 0.9, nesterov: true, weightDecay: 1e-3 } },
  ],
];

describe.each(await targets())("trajectories on the %s", (_, make) => {
  it.each(cases)("%s", async (_name, options) => {
    const target = await make();
    const parameters = new Parameters(target, noise(total, 1));
    const foundInf = {
      buffer: target.allocate(4),
      offset: 0,
      length: 1,
      dtype: "float32",
    } as const;
    const optimizer =
      "AdamW" in options
        ? new AdamW(target, parameters.flat, options.AdamW)
        : new SGD(target, parameters.flat, options.SGD);
    const reference =
      "AdamW" in options ? adamwReference(options.AdamW) : sgdReference(options.SGD);
    const { lr } = optimizer.paramGroups[0] as { lr: number | ((step: number) => number) };

    let expected = noise(total, 1);
    let applied = 0;
    let path = 0;
    for (let step = 0; step < steps; step++) {
      const gradients = gradient(expected, step);
      const skipped = isSkipped(step);
      parameters.setGradients(skipped ? gradients.map(() => Number.NaN) : gradients);
      target.write(foundInf, [Number(skipped)]);
      optimizer.step({ foundInf: foundInf.buffer });
      if (skipped) continue;
      const rate = typeof lr === "number" ? lr : lr(applied);
      applied++;
      const previous = expected;
      expected = expected.map((p, i) => reference(p, gradients[i] as number, i, applied, rate));
      path = Math.max(path, ...expected.map((p, i) => Math.abs(p - (previous[i] as number))));
    }
    const found = await parameters.values();
    const size = Math.max(...expected.map(Math.abs));
    const worst = Math.max(...found.map((v, i) => Math.abs(v - (expected[i] as number)) / size));
    expect(await optimizer.appliedSteps()).toEqual([applied]);
    expect(path).toBeGreaterThan(0.003);
    expect(worst).toBeLessThan(1e-4);
  });
});
