import { describe, expect, test } from "vitest";
import {
  type AmpPrimitives,
  float32Primitives,
  GradScaler,
  type GradScalerOptions,
  nextScaleState,
  type ScaledOptimizer,
  type ScalerPreset,
  ScalerStateError,
  scaledValue,
  scalerRule,
} from "../src/index.js";
import { mistakeOf } from "./mistake-of.js";
import { Sgd } from "./sgd.js";

const one = (): Float32Array => Float32Array.of(1);

/** One whole training step. */
function train(
  scaler: GradScaler<Float32Array>,
  optimizer: Sgd,
  gradients: readonly number[],
): void {
  optimizer.zeroGrad();
  optimizer.backward(gradients, scaledValue(scaler.scale(one())));
  scaler.step(optimizer);
  scaler.update();
}

describe("a training step", () => {
  test("scales losses, one or several, in float32", () => {
    const scaler = new GradScaler(float32Primitives, { initScale: 1000 });
    expect(scaler.scale(Float32Array.of(0.1))).toEqual(Float32Array.of(Math.fround(0.1) * 1000));
    expect(scaler.scale([one(), Float32Array.of(2)])).toEqual([
      Float32Array.of(1000),
      Float32Array.of(2000),
    ]);
  });

  test("changes no bit of the parameters with any power of two", () => {
    const gradients = Array.from({ length: 50 }, (_, i) => [Math.sin(i), Math.cos(i) * 1e-3]);
    const plain = new Sgd([1, -1]);
    for (const gradient of gradients) {
      plain.zeroGrad();
      plain.backward(gradient, one());
      plain.step();
    }
    for (const initScale of [2 ** -10, 1, 65536, 2 ** 40]) {
      for (const fused of [false, true]) {
        const scaler = new GradScaler(float32Primitives, { initScale, growthInterval: 7 });
        const scaled = new Sgd([1, -1], fused);
        for (const gradient of gradients) train(scaler, scaled, gradient);
        expect(scaled.parameters).toEqual(plain.parameters);
      }
    }
  });

  test("unscales in place for plain optimizers, and leaves it to those that can", () => {
    const scaler = new GradScaler(float32Primitives, { initScale: 4 });
    const plain = new Sgd([0]);
    const fused = new Sgd([0], true);
    for (const optimizer of [plain, fused])
      optimizer.backward([3], scaledValue(scaler.scale(one())));
    scaler.step([plain, fused]);
    expect([plain.parameters[0], plain.gradient?.[0], plain.unscaledItself]).toEqual([
      -3,
      3,
      false,
    ]);
    expect([fused.parameters[0], fused.gradient?.[0], fused.unscaledItself]).toEqual([
      -3,
      12,
      true,
    ]);
  });

  test("unscales once where unscale() was called for clipping", () => {
    const scaler = new GradScaler(float32Primitives, { initScale: 4 });
    const optimizer = new Sgd([0], true);
    optimizer.backward([3], scaledValue(scaler.scale(one())));
    scaler.unscale(optimizer);
    expect(optimizer.gradient).toEqual(Float32Array.of(3));
    optimizer.gradient?.set([1]);
    scaler.step(optimizer);
    expect([optimizer.parameters[0], optimizer.unscaledItself]).toEqual([-1, false]);
  });

  test("flags hold from the check to the update", () => {
    const scaler = new GradScaler(float32Primitives);
    const optimizer = new Sgd([0]);
    optimizer.backward([Number.NaN], scaledValue(scaler.scale(one())));
    scaler.step(optimizer);
    expect(scaler.foundInf(optimizer)?.[0]).toBe(1);
    scaler.update();
    expect(scaler.foundInf(optimizer)).toEqual(Float32Array.of(0, 0));
  });

  test("update(newScale) replaces the scale and keeps the growth tracker, as torch does", async () => {
    const scaler = new GradScaler(float32Primitives, { growthInterval: 3 });
    const optimizer = new Sgd([0]);
    train(scaler, optimizer, [1]);
    optimizer.backward([Number.POSITIVE_INFINITY], scaledValue(scaler.scale(one())));
    scaler.step(optimizer);
    scaler.update(100);
    expect(await scaler.stateDict()).toMatchObject({ scale: 100, growthTracker: 1, step: 2 });
    scaler.update(50);
    expect(await scaler.stateDict()).toMatchObject({ scale: 50, growthTracker: 1, step: 2 });
    for (const wrong of [0, -1, Number.NaN, Number.POSITIVE_INFINITY, 2 ** -17]) {
      expect(() => scaler.update(wrong)).toThrow(RangeError);
    }
    expect(await scaler.drain()).toMatchObject([
      { step: 1, status: "applied" },
      { step: 2, status: "skipped", scaleBefore: 65536, scaleAfter: 100 },
    ]);
  });
});

describe("several optimizers", () => {
  const overflowInFirst = (skip: "perOptimizer" | "global") => {
    const scaler = new GradScaler(float32Primitives, { initScale: 8, skip });
    const optimizers = [new Sgd([0]), new Sgd([0], true)] as const;
    const scaled = scaledValue(scaler.scale(one()));
    optimizers[0].backward([Number.NaN], scaled);
    optimizers[1].backward([1], scaled);
    return { scaler, optimizers };
  };

  test("are skipped one by one, and share the scale", async () => {
    const { scaler, optimizers } = overflowInFirst("perOptimizer");
    for (const optimizer of optimizers) scaler.step(optimizer);
    scaler.update();
    expect(optimizers.map(({ parameters }) => parameters[0])).toEqual([0, -1]);
    expect(await scaler.drain()).toEqual([
      {
        step: 1,
        status: "skipped",
        optimizers: ["skipped", "applied"],
        foundInf: true,
        cause: { pass: "backward", optimizers: [0] },
        scaleBefore: 8,
        scaleAfter: 4,
        lostBefore: 0,
      },
    ]);
  });

  test('are skipped together with skip: "global", at once or unscaled first', async () => {
    for (const first of ["step", "unscale"] as const) {
      const { scaler, optimizers } = overflowInFirst("global");
      if (first === "unscale") {
        for (const optimizer of [...optimizers].reverse()) scaler.unscale(optimizer);
        for (const optimizer of [...optimizers].reverse()) scaler.step(optimizer);
      } else scaler.step([...optimizers].reverse());
      scaler.update();
      expect(optimizers.map(({ parameters }) => parameters[0])).toEqual([0, 0]);
      expect(await scaler.drain()).toMatchObject([
        { status: "skipped", optimizers: ["skipped", "skipped"] },
      ]);
    }
  });

  test('refuse with skip: "global" a check that comes after a step', () => {
    const { scaler, optimizers } = overflowInFirst("global");
    scaler.step(optimizers[1]);
    expect(mistakeOf(() => scaler.step(optimizers[0]))).toMatch(/^late-check: .*step\(\[a, b\]\)/);
  });

  test("are at most 24", () => {
    const scaler = new GradScaler(float32Primitives);
    const optimizers = Array.from({ length: 25 }, () => new Sgd([0]));
    for (const optimizer of optimizers) optimizer.backward([1], scaledValue(scaler.scale(one())));
    expect(mistakeOf(() => scaler.step(optimizers))).toMatch(/^too-many-optimizers/);
    scaler.step(optimizers.slice(1));
    scaler.update();
  });
});

describe("mistakes", () => {
  test("a runtime in place of its primitives is refused by what to pass", () => {
    // @ts-expect-error no primitives
    expect(() => new GradScaler({ step: () => undefined })).toThrow(
      "GradScaler takes primitives: pass ampPrimitives(runtime)",
    );
  });

  const ready = (skipBackward = false) => {
    const scaler = new GradScaler(float32Primitives);
    const optimizer = new Sgd([0]);
    if (!skipBackward) optimizer.backward([1], scaledValue(scaler.scale(one())));
    return { scaler, optimizer };
  };

  test("name the mistake and the remedy", () => {
    const messages: string[] = [];
    const first = ready();
    first.scaler.unscale(first.optimizer);
    messages.push(mistakeOf(() => first.scaler.unscale(first.optimizer)));
    first.scaler.step(first.optimizer);
    messages.push(mistakeOf(() => first.scaler.unscale(first.optimizer)));
    messages.push(mistakeOf(() => first.scaler.step(first.optimizer)));
    const second = ready(true);
    messages.push(mistakeOf(() => second.scaler.step(second.optimizer)));
    messages.push(mistakeOf(() => second.scaler.update()));
    expect(messages).toMatchInlineSnapshot(`
      [
        "double-unscale: this optimizer was unscaled already since the last update(): call unscale() once, after the last micro-step.",
        "unscale-after-step: this optimizer has stepped already: call unscale() before step(), or leave it out.",
        "double-step: this optimizer has stepped already since the last update(): call update() at the end of every step.",
        "no-gradients: this optimizer has no gradients: call scale(loss).backward() with a loss that depends on its parameters, or allow it by the option allowNoGrad.",
        "no-checks: no optimizer was unscaled or stepped before update(): call step(optimizer) first, both after the last micro-step only.",
      ]
    `);
  });

  test("float16 gradients are refused by name, bfloat16 ones are not", () => {
    const seen: string[] = [];
    const primitives: AmpPrimitives<Float32Array> = {
      ...float32Primitives,
      unscale: (gradients) => void seen.push(...gradients.map(({ dtype }) => dtype)),
    };
    const optimizer = (dtype: "float16" | "bfloat16"): ScaledOptimizer<Float32Array> => ({
      gradients: () => [{ buffer: one(), dtype, name: "conv1.weight" }],
      step: () => {},
    });
    const scaler = new GradScaler(primitives, { initScale: 1, dynamic: false });
    expect(mistakeOf(() => scaler.step(optimizer("float16")))).toMatch(
      /^float16-gradients: the gradient "conv1.weight" is float16, .*master weights/,
    );
    scaler.step(optimizer("bfloat16"));
    expect(seen).toEqual(["bfloat16"]);
  });

  test("a loss that is no loss is refused, and changes nothing", () => {
    const scaler = new GradScaler(float32Primitives);
    expect(() => scaler.scale(3 as unknown as Float32Array)).toThrow("the loss to scale is 3: ");
    scaler.update(4);
  });

  test("a refused call leaves everything as it was", () => {
    const { scaler, optimizer } = ready();
    const empty = new Sgd([0]);
    expect(mistakeOf(() => scaler.step([optimizer, empty]))).toMatch(/^no-gradients/);
    expect(optimizer.parameters[0]).toBe(0);
    scaler.unscale(optimizer);
    scaler.step(optimizer);
    scaler.update();
    expect(optimizer.parameters[0]).toBe(-1);
  });

  test("the scale cannot be changed while micro-steps accumulate", async () => {
    const { scaler, optimizer } = ready();
    const saved = await scaler.stateDict();
    const message = /^scale-changed: .*before the next scale\(\)/;
    expect(mistakeOf(() => scaler.update(8))).toMatch(message);
    expect(mistakeOf(() => scaler.loadStateDict(saved))).toMatch(message);
    scaler.step(optimizer);
    expect(mistakeOf(() => scaler.loadStateDict(saved))).toMatch(message);
    scaler.update();
    scaler.loadStateDict(saved);
  });

  test("an update between two optimizers' steps is noticed", () => {
    const scaler = new GradScaler(float32Primitives);
    const [a, b] = [new Sgd([0]), new Sgd([0])];
    const scaled = scaledValue(scaler.scale(one()));
    for (const optimizer of [a, b]) optimizer.backward([1], scaled);
    scaler.step(a);
    scaler.update();
    const message = /^scale-changed: .*after the step of the last optimizer/;
    expect(mistakeOf(() => scaler.step(b))).toMatch(message);
    expect(mistakeOf(() => scaler.unscale(b))).toMatch(message);
  });

  test("errors are recognised across two copies of the package", () => {
    const foreign = Object.defineProperty(new Error(), Symbol.for("@halfstep/ScalerStateError"), {
      value: true,
    });
    expect(foreign).toBeInstanceOf(ScalerStateError);
    expect(new Error()).not.toBeInstanceOf(ScalerStateError);
  });

  test("options out of range are refused", () => {
    expect(() => new GradScaler(float32Primitives, { growthFactor: 0.5 })).toThrow(
      "growthFactor is 0.5: it must be",
    );
    for (const schedule of [{ steps: 0 }, { steps: 1.5 }, { milliseconds: Number.NaN }]) {
      const outcomeSchedule = { steps: 16, milliseconds: 250, ...schedule };
      const [name, value] = Object.entries(schedule)[0] as [string, number];
      expect(() => new GradScaler(float32Primitives, { outcomeSchedule })).toThrow(
        `outcomeSchedule.${name} is ${value}: `,
      );
    }
    expect(() => new GradScaler(float32Primitives, { skip: "none" as "global" })).toThrow(
      "skip is none",
    );
    const misspelt = { init_scale: 1024 } as GradScalerOptions;
    expect(() => new GradScaler(float32Primitives, misspelt)).toThrow(
      '"init_scale" is no option of a loss scale: choose one of initScale, ',
    );
  });
});

describe("state", () => {
  test("goes on exactly where it was saved, through JSON", async () => {
    const random = (i: number): number => (Math.sin(i * 12.9) > 0.6 ? Number.NaN : 1);
    const presets: readonly (ScalerPreset | undefined)[] = [
      ...[undefined, "torch", "apex", "apexHysteresis", "apexFp16Utils", "megatron"],
      ...(["deepspeed", "deepspeedFp16Optimizer", "fairseq", "jmp", "keras"] as const),
      ...(["static", "paper"] as const),
    ] as const;
    for (const preset of presets) {
      const options = {
        ...{ growthInterval: 3, initScale: 1024, ...(preset && { preset }) },
        ...(preset === "fairseq" && { tolerance: 0.3 }),
      };
      const whole = new GradScaler(float32Primitives, options);
      const wholeOptimizer = new Sgd([0]);
      const parts = [options, {}].map((each) => new GradScaler(float32Primitives, each));
      const partsOptimizer = new Sgd([0]);
      for (let i = 0; i < 60; i += 1) {
        if (i === 31) {
          const saved = JSON.stringify(await parts[0]?.stateDict());
          parts.shift();
          parts[0]?.loadStateDict(JSON.parse(saved));
        }
        train(whole, wholeOptimizer, [random(i)]);
        train(parts[0] as GradScaler<Float32Array>, partsOptimizer, [random(i)]);
      }
      expect(await parts[0]?.stateDict()).toEqual(await whole.stateDict());
      expect(await parts[0]?.drain()).toEqual((await whole.drain()).slice(31));
      expect(parts[0]?.rule).toEqual(whole.rule);
    }
  });

  test("of several losses goes on too", async () => {
    const options = { losses: [{ initScale: 8 }, { initScale: 64 }], growthInterval: 2 };
    const [first, second] = [0, 1].map(() => new GradScaler(float32Primitives, options));
    const both = (scaler: GradScaler<Float32Array>, gradients: readonly number[]): void => {
      const optimizer = new Sgd([0]);
      for (const [lossId, gradient] of gradients.entries()) {
        const scaled = scaler.scale(one(), { lossId, optimizers: optimizer });
        optimizer.backward([gradient], scaledValue(scaled));
      }
      scaler.step(optimizer);
      scaler.update();
    };
    both(first as GradScaler<Float32Array>, [1, Number.NaN]);
    const saved = JSON.parse(JSON.stringify(await first?.stateDict()));
    second?.loadStateDict(saved);
    for (const scaler of [first, second]) both(scaler as GradScaler<Float32Array>, [1, 1]);
    expect(await second?.stateDict()).toEqual(await first?.stateDict());
    expect(await second?.stateDict()).toMatchObject({
      step: 2,
      scale: 16,
      losses: [{ scale: 32 }],
    });
  });

  test("loads a state that torch has saved, in torch's spelling or ours", async () => {
    const ours = { growthFactor: 4, backoffFactor: 0.25, growthInterval: 10 };
    const torch =
      '{"scale": 512.0, "growth_factor": 4.0, "backoff_factor": 0.25, "growth_interval": 10, "_growth_tracker": 9}';
    for (const saved of [JSON.parse(torch), { scale: 512, ...ours, growthTracker: 9 }]) {
      const scaler = new GradScaler(float32Primitives);
      scaler.loadStateDict(saved);
      train(scaler, new Sgd([0]), [1]);
      expect(await scaler.stateDict()).toMatchObject({ ...ours, scale: 2048, growthTracker: 0 });
    }
  });

  test("refuses an empty or impossible one and stays as it was", async () => {
    const scaler = new GradScaler(float32Primitives);
    const saved = { ...(await scaler.stateDict()) };
    const wrong: [object, RegExp][] = [
      [{}, /disabled/],
      [{ ...saved, scale: undefined }, /scale is undefined|scale is NaN/],
      [{ ...saved, scale: Number.NaN }, /scale is NaN/],
      [{ ...saved, scale: 2 ** -20 }, /scale is/],
      [{ ...saved, growthTracker: -1 }, /growthTracker is -1/],
      [{ ...saved, growthTracker: undefined }, /growthTracker is undefined/],
      [{ ...saved, growthFactor: 0.5 }, /growthFactor is 0.5/],
      [{ ...saved, step: 0.5 }, /step is 0.5/],
      [
        { ...saved, foo: 1 },
        /"foo" is no option of a loss scale: choose one of scale, growthTracker, initScale/,
      ],
      [{ ...saved, losses: [saved] }, /has 2 loss scales, but this scaler 1/],
      [{ ...saved, hysteresis: 2, hysteresisTracker: 0.5 }, /hysteresisTracker is 0.5/],
      [{ ...saved, tolerance: 0.5, stepsSinceRescale: -1 }, /stepsSinceRescale is -1/],
    ];
    for (const [state, message] of wrong) {
      expect(() => scaler.loadStateDict(state)).toThrow(RangeError);
      expect(() => scaler.loadStateDict(state)).toThrow(message);
    }
    expect(await scaler.stateDict()).toEqual(saved);
  });

  test("has any scale within its limits, not only integers", async () => {
    const scaler = new GradScaler(float32Primitives, { tolerance: 0.5, hysteresis: 2 });
    const saved = { ...(await scaler.stateDict()), scale: 0.75, overflowsSinceRescale: 3 };
    scaler.loadStateDict(saved);
    expect(await scaler.stateDict()).toEqual(saved);
  });
});

test("step() refuses a closure, as torch does", () => {
  const scaler = new GradScaler(float32Primitives);
  const step = scaler.step as (optimizer: Sgd, closure: () => void) => void;
  expect(() => step.call(scaler, new Sgd([0]), () => {})).toThrow(
    "scaler.step() takes no closure: call scale(loss).backward()",
  );
});

test("what is no optimizer, and what is no scale, is refused in a line", () => {
  const scaler = new GradScaler(float32Primitives);
  const optimizer = /^not an optimizer: .*; pass one, or a list of them$/;
  for (const wrong of [undefined, null, 3, [undefined]] as never[])
    for (const name of ["step", "unscale"] as const)
      expect(() => scaler[name](wrong)).toThrow(optimizer);
  expect(() => scaler.update("2" as never)).toThrow('newScale is "2": it must be a number from');
});

describe("enabled: false", () => {
  test("is the identity and allocates nothing", async () => {
    const untouchable = new Proxy({} as AmpPrimitives<Float32Array>, {
      get: (_, name) => {
        throw new Error(`${String(name)} was used`);
      },
    });
    const scaler = new GradScaler(untouchable, { enabled: false });
    const optimizer = new Sgd([0]);
    const loss = one();
    expect(scaler.scale(loss)).toBe(loss);
    optimizer.backward([3], loss);
    scaler.unscale(optimizer);
    scaler.step(optimizer);
    scaler.update();
    scaler.update();
    scaler.loadStateDict({ scale: 3 });
    expect(optimizer.parameters[0]).toBe(-3);
    expect([scaler.enabled, await scaler.getScale(), await scaler.stateDict()]).toEqual([
      false,
      1,
      {},
    ]);
    expect([await scaler.drain(), scaler.foundInf(optimizer)]).toEqual([[], undefined]);
  });
});

describe("a recording that is dropped", () => {
  test("leaves the scaler as it was before", async () => {
    let undos: (() => void)[] | undefined;
    const primitives: AmpPrimitives<Float32Array> = {
      ...float32Primitives,
      // Work of a dropped recording never runs.
      unscale: (...call) => undos ?? float32Primitives.unscale(...call),
      updateScale: (...call) => undos ?? float32Primitives.updateScale(...call),
      onRollback: (undo) => void undos?.push(undo),
    };
    const scaler = new GradScaler(primitives);
    const optimizer = new Sgd([0]);
    train(scaler, optimizer, [1]);
    for (const calls of [1, 2, 3, 4]) {
      undos = [];
      optimizer.backward([1], scaledValue(scaler.scale(one())));
      if (calls > 1) scaler.unscale(optimizer);
      if (calls > 2) scaler.step(optimizer);
      if (calls > 3) scaler.update();
      const kept = undos;
      undos = undefined;
      for (const undo of kept.reverse()) undo();
      train(scaler, optimizer, [1]);
    }
    expect((await scaler.drain()).map(({ step, status }) => [step, status])).toEqual(
      [1, 2, 3, 4, 5].map((step) => [step, "applied"]),
    );
    expect(await scaler.stateDict()).toMatchObject({ step: 5, growthTracker: 5 });
  });
});

test("1,000 steps follow nextScaleState", async () => {
  const rule = scalerRule("torch", { growthInterval: 20 });
  const scaler = new GradScaler(float32Primitives, { preset: "torch", growthInterval: 20 });
  const optimizer = new Sgd([0]);
  let state = { scale: rule.initScale, growthTracker: 0 };
  const expected: [number, string, number][] = [];
  const found: [number, string, number][] = [];
  for (let step = 1; step <= 1000; step += 1) {
    const foundInf = Math.sin(step * 78.2) > 0.97;
    train(scaler, optimizer, [foundInf ? Number.NaN : 0]);
    state = nextScaleState(state, foundInf, rule);
    expected.push([step, foundInf ? "skipped" : "applied", state.scale]);
    if (step % 200 !== 0) continue;
    for (const outcome of await scaler.drain()) {
      found.push([outcome.step, outcome.status, outcome.scaleAfter]);
    }
  }
  expect(found).toEqual(expected);
});
