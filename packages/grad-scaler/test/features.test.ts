import { describe, expect, test } from "vitest";
import {
  type AmpPrimitives,
  float32Primitives,
  GradScaler,
  nextScaleState,
  type OverflowOrigin,
  type ScaleCollapseError,
  scaledValue,
  type UnderflowOrigin,
} from "../src/index.js";
import { mistakeOf } from "./mistake-of.js";
import { Sgd } from "./sgd.js";
import { train } from "./train.js";

const one = (): Float32Array => Float32Array.of(1);

describe("outcomes", () => {
  test("say whether the forward or the backward pass overflowed, and who met it", async () => {
    const scaler = new GradScaler(float32Primitives, { initScale: 8 });
    const optimizer = new Sgd([0]);
    train(scaler, optimizer, [1]);
    train(scaler, optimizer, [Number.POSITIVE_INFINITY]);
    train(scaler, optimizer, [1], Number.NaN);
    // A loss that is infinite and gradients that are not: torch applies such a step.
    optimizer.zeroGrad();
    scaler.scale(Float32Array.of(Number.NEGATIVE_INFINITY));
    optimizer.backward([1], one());
    scaler.step(optimizer);
    scaler.update();
    train(scaler, optimizer, [Number.NaN]);
    const outcomes = await scaler.drain();
    expect(outcomes.map(({ status, cause }) => cause ?? status)).toEqual([
      "applied",
      { pass: "backward", optimizers: [0] },
      { pass: "forward", optimizers: [0] },
      "applied",
      { pass: "backward", optimizers: [0] },
    ]);
  });

  test("have the norm of all unscaled gradients, before clipping", async () => {
    for (const fused of [false, true]) {
      const scaler = new GradScaler(float32Primitives, { initScale: 1024, gradientNorm: true });
      const [a, b] = [new Sgd([0, 0], fused), new Sgd([0])];
      const scaled = scaledValue(scaler.scale(one()));
      a.backward([1, 2], scaled);
      b.backward([2], scaled);
      scaler.unscale(b);
      scaler.clip(b, ({ gradient }) => gradient?.fill(0.5));
      scaler.step([a, b]);
      scaler.update();
      train(scaler, b, [7]);
      const norms = (await scaler.drain()).map(({ gradientNorm }) => gradientNorm);
      expect(norms).toEqual([3, 7]);
      expect(b.parameters[0]).toBe(-7.5);
    }
    const without = new GradScaler(float32Primitives);
    train(without, new Sgd([0]), [1]);
    const [outcome] = await without.drain();
    expect(outcome).toMatchObject({ step: 1, status: "applied" });
    expect(outcome).not.toHaveProperty("gradientNorm");
  });

  test("carry the origin of an overflow where somebody looked for it", async () => {
    const asked: [number, boolean][] = [];
    let step = 0;
    const origin: OverflowOrigin = {
      ...{ op: "exp", tensor: "result of exp", module: "head", element: 17, kind: "infinity" },
    };
    const scaler = new GradScaler({
      ...float32Primitives,
      watchStep() {
        const watched = ++step;
        return async (foundInf) => {
          asked.push([watched, foundInf]);
          if (watched === 3) throw new Error("the device was lost");
          return foundInf ? origin : undefined;
        };
      },
    });
    const optimizer = new Sgd([0]);
    for (const gradient of [1, Number.NaN, Number.NaN]) train(scaler, optimizer, [gradient]);
    const causes = (await scaler.drain()).map(({ cause }) => cause);
    expect(asked).toEqual([
      [1, false],
      [2, true],
      [3, true],
    ]);
    expect(causes).toEqual([
      undefined,
      { pass: "backward", optimizers: [0], origin },
      { pass: "backward", optimizers: [0] },
    ]);
  });

  test("say of a step that all its gradients were 0, and where they were rounded to it", async () => {
    const asked: boolean[] = [];
    const origin: UnderflowOrigin = {
      ...{ op: "cast", tensor: "result of cast", kind: "underflow" },
      ...{ elements: 3, roundedToZero: 2, exactZeros: 1 },
    };
    const scaler = new GradScaler({
      ...float32Primitives,
      watchStep: () => (_, allZero) => {
        asked.push(allZero);
        return allZero && asked.length > 1 ? origin : undefined;
      },
    });
    const [optimizer, other] = [new Sgd([0, 0]), new Sgd([0], true)];
    train(scaler, optimizer, [0, -0]);
    train(scaler, optimizer, [0, 2 ** -149]);
    train(scaler, optimizer, [Number.NaN, 0]);
    // One optimizer's are not.
    const scaled = scaledValue(scaler.scale(one()));
    optimizer.zeroGrad();
    optimizer.backward([0, 0], scaled);
    other.backward([1], scaled);
    scaler.step([optimizer, other]);
    scaler.update();
    train(scaler, other, [0]);
    const outcomes = await scaler.drain();
    expect(outcomes.map(({ status, zeroGradients }) => [status, zeroGradients])).toEqual([
      ["applied", {}],
      ["applied", undefined],
      ["skipped", undefined],
      ["applied", undefined],
      ["applied", { origin }],
    ]);
    expect(asked).toEqual([true, false, false, false, true]);
  });

  test("a collapse says how many skips it took and which pass overflowed first", async () => {
    const collapse = async (losses: readonly number[]): Promise<ScaleCollapseError> => {
      const scaler = new GradScaler(float32Primitives, { initScale: 2 ** -14 });
      const optimizer = new Sgd([0]);
      train(scaler, optimizer, [Number.NaN]);
      train(scaler, optimizer, [1]);
      for (const loss of losses) train(scaler, optimizer, [Number.NaN], loss);
      return (await scaler.drain().catch((error: unknown) => error)) as ScaleCollapseError;
    };
    const forward = await collapse([Number.NaN, 1]);
    expect([forward.step, forward.scale, forward.skips, forward.pass]).toEqual([
      ...[4, 2 ** -16, 2, "forward"],
    ]);
    expect(forward.message).toBe(
      "step 4 was skipped at the smallest loss scale allowed (0.0000152587890625; overflows in a row: 2): a smaller scale " +
        "will not help. The forward pass overflowed first: the loss was infinite or NaN. Look at the data, the learning " +
        "rate, and ops that need float32.",
    );
    const backward = await collapse([1, Number.NaN]);
    expect([backward.skips, backward.pass]).toEqual([2, "backward"]);
    expect(backward.message).toMatch(
      /The backward pass overflowed first: the loss was finite. Look for infinite derivatives .*, and ops that need float32\.$/,
    );
  });

  test("presets that never raise never reject", async () => {
    const scaler = new GradScaler(float32Primitives, {
      preset: "deepspeedFp16Optimizer",
      initScale: 1,
    });
    for (let i = 0; i < 3; i += 1) train(scaler, new Sgd([0]), [Number.NaN]);
    expect((await scaler.drain()).map(({ scaleAfter }) => scaleAfter)).toEqual([1, 1, 1]);
  });
});

describe("several losses", () => {
  /** Two losses over one optimizer, whose gradients are added up. */
  function both(
    scaler: GradScaler<Float32Array>,
    optimizer: Sgd,
    gradients: readonly [number, number],
  ): void {
    optimizer.zeroGrad();
    for (const [lossId, gradient] of gradients.entries()) {
      const scaled = scaler.scale(one(), { lossId, optimizers: optimizer });
      optimizer.backward([gradient], scaledValue(scaled));
    }
    scaler.step(optimizer);
    scaler.update();
  }

  test("have scales of their own, which their own overflows change", async () => {
    for (const fused of [false, true]) {
      const scaler = new GradScaler(float32Primitives, {
        gradientNorm: true,
        losses: [{ initScale: 16 }, { initScale: 1024, growthInterval: 2 }],
      });
      const optimizer = new Sgd([0], fused);
      both(scaler, optimizer, [3, 5]);
      expect(optimizer.parameters[0]).toBe(-8);
      both(scaler, optimizer, [Number.POSITIVE_INFINITY, 1]);
      both(scaler, optimizer, [1, Number.NaN]);
      expect(optimizer.parameters[0]).toBe(-8);
      both(scaler, optimizer, [0.5, 0.5]);
      expect(optimizer.parameters[0]).toBe(-9);
      expect(await Promise.all([scaler.getScale(0), scaler.getScale(1)])).toEqual([8, 1024]);
      const outcomes = await scaler.drain();
      expect(outcomes.map(({ status, cause }) => cause?.pass ?? status)).toEqual([
        ...["applied", "backward", "backward", "applied"],
      ]);
      const scales = outcomes.map(({ losses = [] }) =>
        losses.map(({ lossId, foundInf, scaleBefore, scaleAfter }) =>
          [lossId, foundInf ? "!" : ".", scaleBefore, scaleAfter].join(" "),
        ),
      );
      expect(scales).toEqual([
        ["0 . 16 16", "1 . 1024 1024"],
        ["0 ! 16 8", "1 . 1024 2048"],
        ["0 . 8 8", "1 ! 2048 1024"],
        ["0 . 8 8", "1 . 1024 1024"],
      ]);
      expect(outcomes[0]?.gradientNorm).toBe(8);
      expect(scaler.foundInf(optimizer)).toEqual(Float32Array.of(0, 0));
    }
  });

  test("with an optimizer each: only the scale of losses that took part changes", async () => {
    const scaler = new GradScaler(float32Primitives, { losses: 2, initScale: 16 });
    const [generator, critic] = [new Sgd([0]), new Sgd([0])];
    const turn = (lossId: 0 | 1, gradient: number): void => {
      const optimizer = [generator, critic][lossId] as Sgd;
      optimizer.zeroGrad();
      const scaled = scaler.scale(one(), { lossId, optimizers: optimizer });
      optimizer.backward([gradient], scaledValue(scaled));
      scaler.step(optimizer);
    };
    turn(1, Number.NaN);
    scaler.update();
    turn(1, 2);
    turn(0, 3);
    scaler.update();
    turn(0, Number.NaN);
    turn(1, 1);
    scaler.update();
    expect([generator.parameters[0], critic.parameters[0]]).toEqual([-3, -3]);
    expect(await scaler.stateDict()).toMatchObject({
      scale: 8,
      growthTracker: 0,
      losses: [{ scale: 8, growthTracker: 2 }],
    });
    const outcomes = await scaler.drain();
    expect(outcomes.map(({ losses }) => losses?.map(({ lossId }) => lossId))).toEqual([
      [1],
      [0, 1],
      [0, 1],
    ]);
    expect(outcomes[2]).toMatchObject({
      optimizers: ["skipped", "applied"],
      cause: { optimizers: [0] },
    });
  });

  test('with skip: "global" every optimizer waits for every loss', async () => {
    const scaler = new GradScaler(float32Primitives, { losses: 2, initScale: 16, skip: "global" });
    const optimizers = [new Sgd([0]), new Sgd([0])] as const;
    for (const [lossId, optimizer] of optimizers.entries()) {
      const scaled = scaler.scale(one(), { lossId, optimizers: optimizer });
      optimizer.backward([lossId === 0 ? Number.NaN : 1], scaledValue(scaled));
    }
    scaler.step(optimizers);
    scaler.update();
    expect(optimizers.map(({ parameters }) => parameters[0])).toEqual([0, 0]);
    expect(await Promise.all([scaler.getScale(0), scaler.getScale(1)])).toEqual([8, 16]);
  });

  test("need to know whose gradients they go to, and come before the step", async () => {
    const scaler = new GradScaler(float32Primitives, { losses: 2 });
    const optimizer = new Sgd([0]);
    const mistakes = [
      mistakeOf(() => scaler.scale(one())),
      mistakeOf(() => scaler.scale(one(), { lossId: 2, optimizers: optimizer })),
      mistakeOf(() => new GradScaler(float32Primitives).scale(one(), { lossId: 1 })),
    ];
    optimizer.backward([1], scaledValue(scaler.scale(one(), { optimizers: optimizer })));
    scaler.unscale(optimizer);
    mistakes.push(mistakeOf(() => scaler.scale(one(), { lossId: 1, optimizers: [optimizer] })));
    expect(mistakes).toEqual([
      expect.stringMatching(/^unknown-loss: .*pass \{ lossId, optimizers \}/),
      expect.stringMatching(/^unknown-loss: there is no loss 2: .* this scaler has 2, from 0 on/),
      expect.stringMatching(/^unknown-loss: there is no loss 1: .* this scaler has 1, from 0 on/),
      expect.stringMatching(/^loss-after-unscale: .*before unscale\(\) and step\(\)/),
    ]);
    await expect(scaler.getScale(2)).rejects.toMatchObject({ mistake: "unknown-loss" });
    for (const losses of [0, 1.5, Number.POSITIVE_INFINITY, []]) {
      expect(() => new GradScaler(float32Primitives, { losses })).toThrow(RangeError);
    }
    const { rescale: _, ...partial } = float32Primitives;
    expect(() => new GradScaler(partial, { losses: 2 })).toThrow(/rescale and combine/);
  });
});

describe("targetUnderflow", () => {
  const gradients = [2 ** -40, 2 ** -30, 1, 0];

  test("picks the scale from the exponents, every growthInterval steps", async () => {
    const options = { initScale: 1, targetUnderflow: 0.2, growthInterval: 4 };
    for (const fused of [false, true]) {
      const scaler = new GradScaler(float32Primitives, options);
      const optimizer = new Sgd([0, 0, 0, 0], fused);
      for (let step = 0; step < 9; step += 1) train(scaler, optimizer, gradients);
      const outcomes = await scaler.drain();
      // 2^-40 must not fall below 2^-25, but 1 must stay below 2^15: so ×2^14, as torch would after 56 steps.
      expect(outcomes.map(({ scaleAfter }) => Math.log2(scaleAfter))).toEqual([
        ...[0, 0, 0, 14, 14, 14, 14, 14, 14],
      ]);
      const shares = outcomes.flatMap(({ underflow }) => underflow ?? []);
      expect(shares.map((share) => share.toFixed(3))).toEqual(["0.667", "0.333"]);
    }
  });

  test("waits for clean steps after an overflow, and shrinks at once", async () => {
    const scaler = new GradScaler(float32Primitives, {
      ...{ initScale: 1, targetUnderflow: 0.5, growthInterval: 3 },
    });
    const optimizer = new Sgd([0, 0, 0, 0]);
    const bad = gradients.with(3, Number.NaN);
    const big = [2 ** 20, 2 ** -30, 2 ** -30, 2 ** -30];
    for (const each of [gradients, bad, gradients, gradients, gradients, gradients, bad, bad, big])
      train(scaler, optimizer, each);
    const scales = (await scaler.drain()).map(({ scaleAfter }) => Math.log2(scaleAfter));
    expect(scales).toEqual([0, -1, -1, -1, -1, 5, 4, 3, -6]);
  });

  test("is nothing without the primitive", () => {
    const { countExponents: _, ...partial } = float32Primitives;
    expect(() => new GradScaler(partial, { targetUnderflow: 0.01 })).toThrow(/countExponents/);
  });
});

describe("mistakes", () => {
  test("clipping comes between unscale and step", () => {
    const scaler = new GradScaler(float32Primitives);
    const optimizer = new Sgd([0]);
    optimizer.backward([1], scaledValue(scaler.scale(one())));
    expect(mistakeOf(() => scaler.clip(optimizer, () => {}))).toMatch(
      /^clip-before-unscale: .*call unscale\(optimizer\) first/,
    );
    scaler.unscale(optimizer);
    expect(scaler.clip(optimizer, ({ gradient }) => gradient?.[0])).toBe(1);
    scaler.step(optimizer);
    expect(mistakeOf(() => scaler.clip(optimizer, () => {}))).toMatch(/^clip-after-step/);
    const disabled = new GradScaler(float32Primitives, { enabled: false });
    expect(disabled.clip(optimizer, () => "clipped")).toBe("clipped");
  });

  test("name the parameters of the optimizer", () => {
    const scaler = new GradScaler(float32Primitives);
    const names = ["a.weight", "a.bias", "b.weight", "b.bias", "c.weight"];
    const optimizer = Object.assign(new Sgd([0]), { parameterNames: () => names });
    expect(mistakeOf(() => scaler.step(optimizer))).toMatch(
      /^no-gradients: the optimizer of "a.weight", "a.bias", "b.weight" and 2 more has no gradients/,
    );
    const short = Object.assign(new Sgd([0]), { parameterNames: () => names.slice(0, 1) });
    short.backward([1], scaledValue(scaler.scale(one())));
    scaler.unscale(short);
    expect(mistakeOf(() => scaler.unscale(short))).toMatch(
      /^double-unscale: the optimizer of "a.weight" was unscaled already/,
    );
  });

  test("allowNoGrad lets an optimizer without gradients through", async () => {
    const scaler = new GradScaler(float32Primitives, { allowNoGrad: true });
    const [used, unused] = [new Sgd([0]), new Sgd([0])];
    used.backward([1], scaledValue(scaler.scale(one())));
    scaler.step([used, unused]);
    scaler.update();
    expect([used.parameters[0], unused.parameters[0]]).toEqual([-1, 0]);
    expect(await scaler.drain()).toMatchObject([{ status: "applied", foundInf: false }]);
  });

  test("a state is not saved between a step and its update", async () => {
    const scaler = new GradScaler(float32Primitives);
    const optimizer = new Sgd([0]);
    optimizer.backward([1], scaledValue(scaler.scale(one())));
    // While micro-steps accumulate a state is as good as before them.
    expect(await scaler.stateDict()).toMatchObject({ scale: 65536 });
    scaler.step(optimizer);
    await expect(scaler.stateDict()).rejects.toThrow(/call it after update\(\)/);
    scaler.update();
    expect(await scaler.stateDict()).toMatchObject({ growthTracker: 1 });
  });
});

test("a scaler needs no optional primitive, nor options that use one", async () => {
  const { normPartials, countExponents, rescale, combine, ...plain } = float32Primitives;
  const primitives: AmpPrimitives<Float32Array> = plain;
  const scaler = new GradScaler(primitives, { initScale: 4 });
  train(scaler, new Sgd([0]), [1]);
  train(scaler, new Sgd([0]), [Number.NaN]);
  expect(await scaler.drain()).toEqual([
    {
      ...{ step: 1, status: "applied", optimizers: ["applied"], foundInf: false },
      ...{ scaleBefore: 4, scaleAfter: 4, lostBefore: 0 },
    },
    {
      ...{ step: 2, status: "skipped", optimizers: ["skipped"], foundInf: true },
      cause: { pass: "backward", optimizers: [0] },
      ...{ scaleBefore: 4, scaleAfter: 2, lostBefore: 0 },
    },
  ]);
  expect([normPartials, countExponents, rescale, combine].includes(undefined)).toBe(false);
  expect(nextScaleState({ scale: 4, growthTracker: 0 }, true, scaler.rule).scale).toBe(2);
});
