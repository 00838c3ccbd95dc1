import { GradScaler, gradientState, marksOf, scaledValue } from "@halfstep/grad-scaler";
import { clipGradNorm, clipGradValue, LARC } from "@halfstep/optim";
import { ampPrimitives } from "@halfstep/tensor";
import { describe, expect, test } from "vitest";
import { type Calls, finish, mistakeOf, setUp } from "./players.js";

// Gradients know whose loss scale they carry, so that an order of calls that loses track of it is refused.

describe("refused, because the numbers would be wrong", () => {
  const cases: Readonly<Record<string, readonly [mistake: string, calls: Calls]>> = {
    "a scaled loss after unscale()": [
      "loss-after-unscale",
      ({ scaler, a }) => {
        scaler.scale(a.loss()).backward();
        scaler.unscale(a.optimizer);
        scaler.scale(a.loss()).backward();
        scaler.step(a.optimizer);
      },
    ],
    "clipping what a scaled loss was added to after unscale()": [
      "loss-after-unscale",
      ({ scaler, a }) => {
        scaler.scale(a.loss()).backward();
        scaler.unscale(a.optimizer);
        scaler.scale(a.loss()).backward();
        scaler.clip(a.optimizer, (each) => clipGradNorm(each, 1));
      },
    ],
    "another optimizer's update() between backward() and step()": [
      "scale-changed",
      ({ scaler, a, b }) => {
        scaler.scale(a.loss()).backward();
        scaler.scale(b.loss()).backward();
        finish(scaler, b.optimizer);
        b.optimizer.zeroGrad();
        scaler.scale(b.loss()).backward();
        scaler.step(a.optimizer);
      },
    ],
    "a loss that was scaled before update() and is differentiated after it": [
      "scale-changed",
      ({ scaler, a, b }) => {
        const early = scaler.scale(a.loss());
        scaler.scale(b.loss()).backward();
        finish(scaler, b.optimizer);
        early.backward();
        scaler.step(a.optimizer);
      },
    ],
    "gradients of two scales added up": [
      "stale-gradients",
      ({ scaler, a, b }) => {
        scaler.scale(a.loss()).backward();
        scaler.scale(b.loss()).backward();
        finish(scaler, b.optimizer);
        scaler.scale(a.loss()).backward();
        scaler.step(a.optimizer);
      },
    ],
    "zeroGrad() forgotten after unscale()": [
      "stale-gradients",
      ({ scaler, a }) => {
        scaler.scale(a.loss()).backward();
        scaler.unscale(a.optimizer);
        finish(scaler, a.optimizer);
        scaler.scale(a.loss()).backward();
        scaler.step(a.optimizer);
      },
    ],
    "the same gradients unscaled once more": [
      "stale-gradients",
      ({ scaler, a }) => {
        scaler.scale(a.loss()).backward();
        scaler.unscale(a.optimizer);
        finish(scaler, a.optimizer);
        scaler.step(a.optimizer);
      },
    ],
    "scale() forgotten": [
      "not-scaled",
      ({ scaler, a }) => {
        a.loss().backward();
        scaler.step(a.optimizer);
      },
    ],
    "scale() forgotten before unscale()": [
      "not-scaled",
      ({ scaler, a }) => {
        a.loss().backward();
        scaler.unscale(a.optimizer);
      },
    ],
    "scale() forgotten for one of two losses": [
      "not-scaled",
      ({ scaler, a }) => {
        scaler.scale(a.loss()).backward();
        a.loss().backward();
        scaler.step(a.optimizer);
      },
    ],
    "scale() forgotten for a part of a loss": [
      "not-scaled",
      ({ scaler, a }) => {
        scaledValue(scaler.scale(a.loss())).add(a.loss()).backward();
        scaler.step(a.optimizer);
      },
    ],
    "another scaler's step()": [
      "other-scaler",
      ({ scaler, scalerOf, a }) => {
        scaler.scale(a.loss()).backward();
        scalerOf().step(a.optimizer);
      },
    ],
    "two scalers in one gradient": [
      "other-scaler",
      ({ scaler, scalerOf, a }) => {
        scaler.scale(a.loss()).backward();
        scalerOf().scale(a.loss()).backward();
        scaler.step(a.optimizer);
      },
    ],
    "a scale that was loaded after backward()": [
      "scale-changed",
      ({ scaler, a, b }) => {
        scaler.scale(a.loss()).backward();
        scaler.scale(b.loss()).backward();
        finish(scaler, b.optimizer);
        scaler.loadStateDict({ scale: 4, growthTracker: 0 });
        scaler.step(a.optimizer);
      },
    ],
    "a scale that was given after backward()": [
      "scale-changed",
      ({ scaler, a, b }) => {
        scaler.scale(a.loss()).backward();
        scaler.scale(b.loss()).backward();
        scaler.step(b.optimizer);
        scaler.update(2);
        scaler.step(a.optimizer);
      },
    ],
    "optimizer.step() without the scaler": [
      "step-without-scaler",
      ({ scaler, a }) => {
        scaler.scale(a.loss()).backward();
        a.optimizer.step();
      },
    ],
    "optimizer.step() around LARC without the scaler": [
      "step-without-scaler",
      ({ scaler, a }) => {
        scaler.scale(a.loss()).backward();
        new LARC(a.optimizer).step();
      },
    ],
    "a disabled scaler's step()": [
      "step-without-scaler",
      ({ scaler, runtime, a }) => {
        scaler.scale(a.loss()).backward();
        new GradScaler(ampPrimitives(runtime), { enabled: false }).step(a.optimizer);
      },
    ],
    "clipGradNorm() of scaled gradients": [
      "clip-before-unscale",
      ({ scaler, a }) => {
        scaler.scale(a.loss()).backward();
        clipGradNorm(a.optimizer, 1);
      },
    ],
    "clipGradValue() of scaled gradients": [
      "clip-before-unscale",
      ({ scaler, a }) => {
        scaler.scale(a.loss()).backward();
        clipGradValue(new LARC(a.optimizer), 1);
      },
    ],
    "clipGradNorm() by a scale of unscaled gradients": [
      "double-unscale",
      ({ scaler, runtime, a }) => {
        scaler.scale(a.loss()).backward();
        scaler.unscale(a.optimizer);
        clipGradNorm(a.optimizer, 1, { gradScale: runtime.target.allocateResident(8) });
      },
    ],
  };

  const loading = new Set([cases["a scale that was loaded after backward()"]?.[1]]);

  test.each(Object.entries(cases))("%s", async (_, [mistake, calls]) => {
    // Within a step states are not loaded at all.
    for (const isRecorded of loading.has(calls) ? [false] : [false, true]) {
      const context = setUp();
      const { runtime } = context;
      const run = (): string => mistakeOf(() => calls(context));
      expect(isRecorded ? await runtime.step(run) : run()).toBe(mistake);
    }
  });

  test("the error names the gradient and the remedy", () => {
    const { scaler, a } = setUp();
    a.loss().backward();
    expect(() => scaler.step(a.optimizer)).toThrow(
      'the gradient of "a" comes at least in part from a loss that was not scaled: call scale(loss).backward() for every loss',
    );
    expect(() => scaledValue(scaler.scale(scaledValue(scaler.scale(a.loss())))).backward()).toThrow(
      "a loss that was scaled twice: call scale() once",
    );
  });

  test("a loss of several that is differentiated after scale() of the next", () => {
    const { scaler, a } = setUp({ losses: 2 });
    const optimizers = a.optimizer;
    const first = scaler.scale(a.loss(), { lossId: 0, optimizers });
    const second = scaler.scale(a.loss(), { lossId: 1, optimizers });
    first.backward();
    second.backward();
    expect(mistakeOf(() => scaler.step(a.optimizer))).toBe("wrong-loss");
  });
});

test("a dropped step leaves the marks as they were", async () => {
  const { runtime, scaler, a, b } = setUp();
  scaler.scale(a.loss()).backward();
  const dropped = runtime.step(() => {
    scaler.scale(b.loss()).backward();
    finish(scaler, a.optimizer);
    a.optimizer.zeroGrad();
    a.loss().backward();
    throw new Error("dropped");
  });
  await expect(dropped).rejects.toThrow("dropped");
  runtime.dryRun(() => scaler.unscale(a.optimizer));
  expect(gradientState(scaler, a.w.gradientMarks)).toBe("scaled");
  expect(gradientState(scaler, b.w.gradientMarks)).toBe("unknown");
  finish(scaler, a.optimizer);
  expect(await a.w.item()).toBe(1);
});

test("a checkpoint can say what gradients are to a scaler, and give their marks back", () => {
  const { scaler, scalerOf, a, b } = setUp();
  scaler.scale(a.loss()).backward();
  b.loss().backward();
  const states = [a, b].map(({ w }) => gradientState(scaler, w.gradientMarks));
  expect([...states, gradientState(scalerOf(), a.w.gradientMarks)]).toEqual([
    "scaled",
    "plain",
    "stale",
  ]);
  scaler.unscale(a.optimizer);
  expect(gradientState(scaler, a.w.gradientMarks)).toBe("unscaled");
  const resumed = scalerOf();
  for (const state of ["scaled", "unscaled", "plain", "stale", "unknown"] as const)
    expect(gradientState(resumed, marksOf(resumed, state))).toBe(state);
});
