import {
  GradScaler,
  type ScaledOptimizer,
  ScalerStateError,
  scaledValue,
} from "@halfstep/grad-scaler";
import { clipGradNorm, clipGradValue, FP16Optimizer, LARC, SGD } from "@halfstep/optim";
import {
  ampPrimitives,
  cpuRuntime,
  flatten,
  grad,
  type Runtime,
  type Storage,
  type Tensor,
  type Variable,
} from "@halfstep/tensor";
import { describe, expect, test } from "vitest";

// Gradients know whose loss scale they carry, so that an order of calls that loses track of it is refused.

type Scaler = GradScaler<Storage, Tensor>;

/** One parameter that starts at 2, its SGD with a rate of 1, and losses whose gradient is a number. */
class Player {
  readonly w: Variable;
  readonly optimizer: SGD<Storage>;

  constructor(runtime: Runtime, name: string) {
    this.w = runtime.variable([2], [1], { requiresGrad: true, name });
    this.optimizer = new SGD(runtime.target, flatten([this.w]), { lr: 1 });
  }

  loss(gradient = 1): Tensor {
    return this.w.sum().mul(gradient);
  }
}

function setUp(options: ConstructorParameters<typeof GradScaler>[1] = {}) {
  const runtime = cpuRuntime();
  const scalerOf = (): Scaler => new GradScaler(ampPrimitives(runtime), options);
  return {
    runtime,
    scalerOf,
    scaler: scalerOf(),
    a: new Player(runtime, "a"),
    b: new Player(runtime, "b"),
  };
}

/** The mistake that a call is refused for; "right" where it is not. */
function mistakeOf(call: () => void): string {
  try {
    call();
    return "right";
  } catch (error) {
    if (error instanceof ScalerStateError) return (error as ScalerStateError).mistake;
    throw error;
  }
}

type Calls = (context: ReturnType<typeof setUp>) => void;

const finish = (scaler: Scaler, optimizer: ScaledOptimizer<Storage>): void => {
  scaler.step(optimizer);
  scaler.update();
};

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

  test.each(Object.entries(cases))("%s", async (_, [mistake, calls]) => {
    for (const isRecorded of [false, true]) {
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
      'the gradient of "a" comes, in whole or in part, from a loss that was not scaled, and would be divided by the scale all the same: call scale(loss).backward() for every loss',
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

describe("allowed, and right", () => {
  /** What `a` and `b` are afterwards. */
  const cases: Readonly<
    Record<string, readonly [after: readonly [number, number], calls: Calls, options?: object]>
  > = {
    "losses of one step added up": [
      [-1, 2],
      ({ scaler, a }) => {
        scaler.scale(a.loss()).backward();
        scaler.scale(a.loss(2)).backward();
        finish(scaler, a.optimizer);
      },
    ],
    "arithmetic on a scaled loss": [
      [1.25, 2],
      ({ scaler, a }) => {
        const sum = scaledValue(scaler.scale(a.loss())).add(scaledValue(scaler.scale(a.loss(2))));
        sum.mul(0.25).backward();
        finish(scaler, a.optimizer);
      },
    ],
    "a GAN: the generator's loss leaves gradients in the discriminator, which clears them before its next step":
      [
        [0, 0],
        ({ scaler, a, b }) => {
          for (let i = 0; i < 2; i++) {
            a.optimizer.zeroGrad();
            scaler.scale(a.loss()).backward();
            finish(scaler, a.optimizer);
            b.optimizer.zeroGrad();
            scaler.scale(b.loss().add(a.loss(7))).backward();
            finish(scaler, b.optimizer);
          }
        },
      ],
    "a GAN with one update(): the discriminator has stepped when the generator's loss adds to its gradients":
      [
        [0, 0],
        ({ scaler, a, b }) => {
          for (let i = 0; i < 2; i++) {
            for (const { optimizer } of [a, b]) optimizer.zeroGrad();
            scaler.scale(a.loss()).backward();
            scaler.unscale(a.optimizer);
            scaler.clip(a.optimizer, (each) => clipGradNorm(each, 10));
            scaler.step(a.optimizer);
            scaler.scale(b.loss().add(a.loss(7))).backward();
            finish(scaler, b.optimizer);
          }
        },
      ],
    "a loss that needs no scale, added after unscale()": [
      [-1, 2],
      ({ scaler, a }) => {
        scaler.scale(a.loss()).backward();
        scaler.unscale(a.optimizer);
        a.loss(2).backward();
        finish(scaler, a.optimizer);
      },
    ],
    "the same, which overflows: the step is skipped": [
      [2, 2],
      ({ scaler, a }) => {
        scaler.scale(a.loss()).backward();
        scaler.unscale(a.optimizer);
        a.loss(Number.POSITIVE_INFINITY).backward();
        finish(scaler, a.optimizer);
      },
    ],
    "an update without a scaler, of gradients that one has unscaled": [
      [1, 2],
      ({ scaler, a }) => {
        scaler.scale(a.loss()).backward();
        scaler.unscale(a.optimizer);
        a.optimizer.step();
      },
    ],
    "no scaler at all": [
      [1, 2],
      ({ a }) => {
        a.loss().backward();
        clipGradNorm(a.optimizer, 10);
        a.optimizer.step();
      },
    ],
    "a disabled scaler, whose losses carry nothing": [
      [1, 2],
      ({ scaler, a }) => {
        scaler.scale(a.loss()).backward();
        scaler.unscale(a.optimizer);
        clipGradNorm(a.optimizer, 10);
        finish(scaler, a.optimizer);
      },
      { enabled: false },
    ],
    "two scalers, each for its own": [
      [1, 0],
      ({ scaler, scalerOf, a, b }) => {
        const other = scalerOf();
        scaler.scale(a.loss()).backward();
        other.scale(b.loss(2)).backward();
        finish(other, b.optimizer);
        finish(scaler, a.optimizer);
      },
    ],
    "a static scale, which no update() changes": [
      [1, -2],
      ({ scaler, a, b }) => {
        scaler.scale(a.loss()).backward();
        for (let i = 0; i < 4; i++) {
          b.optimizer.zeroGrad();
          scaler.scale(b.loss()).backward();
          finish(scaler, b.optimizer);
        }
        finish(scaler, a.optimizer);
      },
      { preset: "static" },
    ],
    "a static scale of 1, forgotten": [
      [0, 2],
      ({ scaler, a }) => {
        a.loss().backward();
        finish(scaler, a.optimizer);
        a.optimizer.zeroGrad();
        scaler.scale(a.loss()).backward();
        a.optimizer.step();
      },
      { preset: "static", initScale: 1 },
    ],
    "gradients that were multiplied by hand": [
      [1, 2],
      ({ scaler, a }) => {
        a.loss(2 ** 16).backward();
        scaler.assumeScaled(a.optimizer);
        finish(scaler, a.optimizer);
      },
    ],
    "a backward pass from a gradient that carries the scale": [
      [-4, 2],
      ({ scaler, a }) => {
        const hidden = a.loss(2);
        const cut = hidden.detach();
        cut.requiresGrad = true;
        const [gradient] = grad(scaledValue(scaler.scale(cut.mul(3))), [cut]);
        hidden.backward(gradient ? { gradient } : {});
        finish(scaler, a.optimizer);
      },
    ],
    "two losses with scales of their own, for one optimizer": [
      [-1, 2],
      ({ scaler, a }) => {
        const optimizers = a.optimizer;
        scaler.scale(a.loss(), { lossId: 0, optimizers }).backward();
        scaler.scale(a.loss(2), { lossId: 1, optimizers }).backward();
        finish(scaler, a.optimizer);
      },
      { losses: [{ initScale: 4 }, { initScale: 1024 }] },
    ],
    "losses with scales of their own: an update of one leaves gradients of the other": [
      [1, 1],
      ({ scaler, a, b }) => {
        scaler.scale(a.loss(), { lossId: 0, optimizers: a.optimizer }).backward();
        scaler.scale(b.loss(), { lossId: 1, optimizers: b.optimizer }).backward();
        finish(scaler, b.optimizer);
        scaler.scale(a.loss(0), { lossId: 0, optimizers: a.optimizer }).backward();
        finish(scaler, a.optimizer);
      },
      { losses: 2 },
    ],
    "FP16Optimizer over two iterations, with two losses and clipping": [
      [0, 2],
      ({ runtime, a }) => {
        const optimizer = new FP16Optimizer(a.optimizer, {
          dynamicLossScale: true,
          verbose: false,
        });
        for (let i = 0; i < 2; i++) {
          optimizer.zeroGrad();
          optimizer.backward(a.loss(0.5), { updateMasterGrads: false });
          optimizer.backward(a.loss(0.5), { updateMasterGrads: false });
          optimizer.updateMasterGrads();
          optimizer.clipMasterGrads(10);
          optimizer.step();
        }
        expect(runtime.kind).toBe("cpu");
      },
    ],
  };

  test.each(Object.entries(cases))("%s", async (_, [after, calls, options]) => {
    for (const isRecorded of [false, true]) {
      const context = setUp(options);
      const { runtime, a, b } = context;
      if (isRecorded) await runtime.step(() => calls(context));
      else calls(context);
      expect([await a.w.item(), await b.w.item()]).toEqual(after);
    }
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
  expect(scaler.gradientState(a.w.gradientMarks)).toBe("scaled");
  expect(scaler.gradientState(b.w.gradientMarks)).toBe("unknown");
  finish(scaler, a.optimizer);
  expect(await a.w.item()).toBe(1);
});

test("a checkpoint can say what gradients are to a scaler, and give their marks back", () => {
  const { scaler, scalerOf, a, b } = setUp();
  scaler.scale(a.loss()).backward();
  b.loss().backward();
  const states = [a, b].map(({ w }) => scaler.gradientState(w.gradientMarks));
  expect([...states, scalerOf().gradientState(a.w.gradientMarks)]).toEqual([
    "scaled",
    "plain",
    "stale",
  ]);
  scaler.unscale(a.optimizer);
  expect(scaler.gradientState(a.w.gradientMarks)).toBe("unscaled");
  const resumed = scalerOf();
  for (const state of ["scaled", "unscaled", "plain", "stale", "unknown"] as const)
    expect(resumed.gradientState(resumed.marksOf(state))).toBe(state);
});
