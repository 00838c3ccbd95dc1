import type { Binding } from "@halfstep/device";
import type { AmpPrimitives } from "@halfstep/grad-scaler";
import { GradScaler, ScalerStateError } from "@halfstep/grad-scaler";
import { accumulate, cpuTarget } from "@halfstep/kernels";
import { ampPrimitives } from "@halfstep/kernels/amp";
import { afterEach, describe, expect, it, vi } from "vitest";
import {
  AdamW,
  FP16Optimizer,
  type FP16OptimizerOptions,
  LARC,
  type ParameterStorage,
  type Schedule,
  SGD,
  warmupLinear,
} from "../src/index.js";
import { type AnyTarget, noise, Parameters, targets, total } from "./targets.js";

/** A loss whose gradients are given: `backward()` adds them to those of the parameters. */
class GivenLoss {
  readonly gradients: Binding<object>;
  readonly #parameters: Parameters;

  constructor(parameters: Parameters, gradients: Binding<object>) {
    this.#parameters = parameters;
    this.gradients = gradients;
  }

  backward(): void {
    const { target, flat } = this.#parameters;
    target.launch(
      accumulate({ input: this.gradients, out: { ...this.gradients, buffer: flat.gradients } }),
    );
  }

  /** Primitives that scale such losses. */
  static primitives(parameters: Parameters): AmpPrimitives<object, GivenLoss> {
    const kernels = ampPrimitives(parameters.target);
    return {
      ...kernels,
      scaleLoss: (loss, state, options) =>
        new GivenLoss(parameters, kernels.scaleLoss(loss.gradients, state, options)),
    };
  }
}

class Model {
  readonly parameters: Parameters;
  readonly #gradients: Parameters;

  constructor(target: AnyTarget, dtype: "float32" | "float16" | "bfloat16" = "float16") {
    this.parameters = new Parameters(target, noise(total, 1), dtype);
    // Gradients of another parameter buffer hold what the loss says.
    this.#gradients = new Parameters(target, [], dtype);
  }

  loss(gradients: readonly number[]): GivenLoss {
    this.#gradients.setGradients(gradients);
    const { segments, gradients: buffer } = this.#gradients.flat;
    const length = (segments.at(-1)?.offset ?? 0) + 1;
    return new GivenLoss(this.parameters, { buffer, offset: 0, length, dtype: "float32" });
  }

  adamw(storage?: ParameterStorage): AdamW<object> {
    const { target, flat } = this.parameters;
    return new AdamW(target, flat, { lr: 0.01, ...(storage && { storage }) });
  }

  wrapped(options: FP16OptimizerOptions<object, GivenLoss>, optimizer = this.adamw()) {
    const primitives = GivenLoss.primitives(this.parameters);
    return new FP16Optimizer(optimizer, { verbose: false, primitives, ...options });
  }
}

const snapshot = async (model: Model, optimizer: { stateDict(): Promise<unknown> }) =>
  JSON.stringify([await model.parameters.values(), await optimizer.stateDict()]);

/** apex's DynamicLossScaler, step by step. */
function apexScales(overflows: readonly boolean[], scale: number, window: number): number[] {
  let last = -1;
  return overflows.map((overflow, step) => {
    if (overflow) {
      scale = Math.max(scale / 2, 1);
      last = step;
    } else if ((step - last) % window === 0) scale *= 2;
    return scale;
  });
}

describe.each(await targets())("FP16Optimizer on the %s", (_, make) => {
  const overflows = [true, true, false, false, false, true, false, false, false, false, true];

  it("scales, skips and grows as apex does, and trains masters as a scaler would", async () => {
    const [model, other] = [new Model(await make()), new Model(await make())];
    const optimizer = model.wrapped({
      dynamicLossScale: true,
      dynamicLossArgs: { initScale: 2 ** 18, scaleWindow: 3 },
    });
    const inner = other.adamw();
    const scaler = new GradScaler(GivenLoss.primitives(other.parameters), {
      preset: "apexFp16Utils",
      initScale: 2 ** 18,
      growthInterval: 3,
    });
    const scales: number[] = [];
    const overflowed: boolean[] = [];
    for (const [step, overflow] of overflows.entries()) {
      const gradients = noise(total, step).map((g, i) => (overflow && i === 80 ? 1e38 : g));
      optimizer.zeroGrad();
      optimizer.backward(model.loss(gradients));
      optimizer.step();
      scales.push(await optimizer.lossScale);
      overflowed.push(await optimizer.overflow);
      inner.zeroGrad();
      scaler.scale(other.loss(gradients)).backward();
      scaler.step(inner);
      scaler.update();
    }
    expect(scales).toEqual(apexScales(overflows, 2 ** 18, 3));
    expect(overflowed).toEqual(overflows);
    expect(await snapshot(model, optimizer.optimizer)).toBe(await snapshot(other, inner));
    expect(await inner.appliedSteps()).toEqual([7]);
  });

  it("adds up losses, clips by the norm of unscaled gradients, and says -1 where they overflowed", async () => {
    const model = new Model(await make());
    const optimizer = model.wrapped({ staticLossScale: 128 });
    const [one, two] = [noise(total, 3), noise(total, 4)];
    const norm = Math.hypot(...one.map((g, i) => g + (two[i] as number)));
    optimizer.backward(model.loss(one), { updateMasterGrads: false });
    expect(() => optimizer.step()).toThrow("updateMasterGrads() first");
    expect(() => optimizer.clipMasterGrads(1)).toThrow(ScalerStateError);
    optimizer.backward(model.loss(two), { updateMasterGrads: false });
    optimizer.updateMasterGrads();
    optimizer.updateMasterGrads();
    const clipped = optimizer.clipMasterGrads(norm / 2);
    expect(() => optimizer.backward(model.loss(one))).toThrow("are unscaled already");
    const [gradients] = (await optimizer.inspectMasterGradData()) ?? [];
    expect(gradients?.map((g) => g?.length)).toEqual([77, 11, 1]);
    const error = gradients
      ?.flatMap((g) => [...(g ?? [])])
      .map((g, i) => Math.abs(g - ((one[i] as number) + (two[i] as number)) / 2));
    expect(Math.max(...(error ?? [1]))).toBeLessThan(1e-6);
    optimizer.step();
    expect(await clipped.read()).toBeCloseTo(norm, 4);
    expect(await optimizer.overflow).toBe(false);

    const before = await snapshot(model, optimizer.optimizer);
    optimizer.zeroGrad();
    optimizer.backward(model.loss(one.with(5, Infinity)));
    const overflowing = optimizer.clipMasterGrads(1, Infinity);
    expect(await optimizer.overflow).toBe(true);
    const warn = vi.spyOn(console, "warn").mockImplementation(() => {});
    expect(await optimizer.inspectMasterGradData()).toBeNull();
    expect(warn).toHaveBeenCalledOnce();
    warn.mockRestore();
    optimizer.step();
    expect(await overflowing.read()).toBe(-1);
    expect(await snapshot(model, optimizer.optimizer)).toBe(before);
    expect(await optimizer.lossScale).toBe(128);
  });

  it("is saved with apex's members and goes on", async () => {
    const target = await make();
    const [model, resumed] = [new Model(target), new Model(target)];
    const options = {
      dynamicLossScale: true,
      dynamicLossArgs: { initScale: 2 ** 10, scaleWindow: 4 },
    };
    const optimizer = model.wrapped(options);
    const run = (of: typeof optimizer, on: Model, from: number, to: number): void => {
      for (let step = from; step < to; step++) {
        of.zeroGrad();
        of.backward(on.loss(noise(total, step).with(3, step === 2 ? Number.NaN : 0.5)));
        of.step();
      }
    };
    run(optimizer, model, 0, 3);
    const state = await optimizer.stateDict();
    expect(Object.keys(state)).toEqual([
      "lossScaler",
      "dynamicLossScale",
      "overflow",
      "firstClosureCallThisStep",
      "optimizerStateDict",
      "fp32FromFp16",
    ]);
    expect([state.overflow, state.dynamicLossScale]).toEqual([true, true]);
    const saved = JSON.stringify(state, (_key, value) =>
      value instanceof Float32Array ? [...value] : value,
    );
    resumed.parameters.setValues(await model.parameters.values());
    const other = resumed.wrapped({ dynamicLossScale: true });
    other.loadStateDict(JSON.parse(saved));
    run(optimizer, model, 3, 9);
    run(other, resumed, 3, 9);
    expect(await snapshot(resumed, other)).toBe(await snapshot(model, optimizer));
    expect(() => other.loadStateDict({ ...state, fp32FromFp16: [] })).toThrow(
      "masters of 0 groups",
    );
  });
});

describe("FP16Optimizer", () => {
  const model = () => new Model(cpuTarget() as AnyTarget);
  afterEach(() => {
    vi.restoreAllMocks();
  });

  it("has apex's defaults", async () => {
    expect(model().wrapped({}).scaler.rule).toMatchObject({ dynamic: false, initScale: 1 });
    expect(model().wrapped({ dynamicLossScale: true }).scaler.rule).toMatchObject({
      dynamic: true,
      initScale: 2 ** 32,
      growthFactor: 2,
      backoffFactor: 0.5,
      growthInterval: 1000,
      minScale: 1,
    });
    const { rule } = model().wrapped({
      dynamicLossScale: true,
      dynamicLossArgs: { scaleFactor: 4 },
    }).scaler;
    expect([rule.growthFactor, rule.backoffFactor]).toEqual([4, 0.25]);
  });

  it("takes a closure with a static scale, and refuses one with a dynamic scale", async () => {
    const own = model();
    const optimizer = own.wrapped({ staticLossScale: 8 });
    const before = await own.parameters.values();
    const closure = (of: typeof optimizer) => () => {
      of.zeroGrad();
      of.backward(own.loss(noise(total, 2)));
      return "loss";
    };
    expect(optimizer.step(closure(optimizer))).toBe("loss");
    expect(await own.parameters.values()).not.toEqual(before);
    const dynamic = own.wrapped({ dynamicLossScale: true }, own.adamw());
    expect(() => dynamic.step(closure(dynamic))).toThrow("cannot go with a dynamic loss scale");
  });

  it("gives up an iteration at zeroGrad(), and steps only what had a backward", async () => {
    const own = model();
    const optimizer = own.wrapped({ dynamicLossScale: true });
    expect(() => optimizer.step()).toThrow("step() found no gradients");
    optimizer.backward(own.loss(noise(total, 2)));
    optimizer.updateMasterGrads();
    optimizer.zeroGrad();
    optimizer.backward(own.loss(noise(total, 2)));
    optimizer.step();
    expect(() => optimizer.step()).toThrow(ScalerStateError);
    expect((await optimizer.scaler.drain()).map(({ status }) => status)).toEqual([
      "skipped",
      "applied",
    ]);
  });

  it("has a scale that can be set, groups that can be changed, and goes around LARC", async () => {
    const own = model();
    const { target, flat } = own.parameters;
    const larc = new LARC(new SGD(target, flat, { lr: 0.1 }));
    const optimizer = new FP16Optimizer(larc, { primitives: GivenLoss.primitives(own.parameters) });
    optimizer.lossScale = 64;
    expect(await optimizer.lossScale).toBe(64);
    for (const group of optimizer.paramGroups) group.lr = 0;
    const before = await own.parameters.values();
    optimizer.backward(own.loss(noise(total, 2)));
    expect(() => {
      optimizer.lossScale = 2;
    }).toThrow(ScalerStateError);
    optimizer.step();
    expect(await own.parameters.values()).toEqual(before);
  });

  it("prints skipped steps unless told not to", async () => {
    const own = model();
    const log = vi.spyOn(console, "log").mockImplementation(() => {});
    const optimizer = own.wrapped({ dynamicLossScale: true, verbose: true });
    optimizer.backward(own.loss(noise(total, 2).with(0, Infinity)));
    optimizer.step();
    await optimizer.scaler.drain();
    await new Promise((resolve) => setTimeout(resolve, 0));
    expect(log.mock.calls).toEqual([
      [`Gradient overflow.  Skipping step, reducing loss scale to ${2 ** 31}`],
    ]);
  });

  it("refuses what would train on wrong numbers", () => {
    const own = model();
    expect(() => own.wrapped({}, own.adamw("plain"))).toThrow(
      'weight is kept as float16 without masters, which FP16Optimizer is for: make the optimizer with storage: "master"',
    );
    expect(() => new FP16Optimizer(own.adamw())).toThrow("give it primitives");
    expect(() => own.wrapped({ staticLossScale: 0 })).toThrow(RangeError);
    const wrong: readonly (readonly [options: object, text: string])[] = [
      [{ dynamic_loss_scale: true }, 'FP16Optimizer has no option "dynamic_loss_scale": it has'],
      [
        { dynamicLossArgs: { init_scale: 4 } },
        'dynamicLossArgs has no option "init_scale": it has',
      ],
      [{ dynamicLossArgs: { scaleWindow: "9" } }, 'scaleWindow is "9": it must be a whole number'],
      [{ dynamicLossScale: "false" }, 'dynamicLossScale is "false": it must be true or false'],
      [{ staticLossScale: "8" }, 'staticLossScale is "8": it must be a positive number'],
      [{ verbose: 0 }, "verbose is 0: it must be true or false"],
    ];
    for (const [options, text] of wrong) expect(() => own.wrapped(options)).toThrow(text);
    const optimizer = own.wrapped({});
    const backward = (options: object) => () => optimizer.backward(own.loss([1]), options);
    expect(backward({ update_master_grads: false })).toThrow(
      'backward has no option "update_master_grads": it has updateMasterGrads, retainGraph',
    );
    expect(backward({ updateMasterGrads: 0 })).toThrow("updateMasterGrads is 0: it must be true");
    expect(() => optimizer.step({} as never)).toThrow("takes a function, not an object");
    expect(() => optimizer.loadStateDict({} as never)).toThrow("it is no state of FP16Optimizer");
  });
});

describe("schedules", () => {
  it("give float32, bfloat16 and float16 runs one trace of rates, whatever the scaler skips", async () => {
    const lr: Schedule = warmupLinear({ lr: 0.01, totalSteps: 20, warmup: 0.2 });
    const trace = async (dtype: "float32" | "bfloat16" | "float16") => {
      const own = new Model(cpuTarget() as AnyTarget, dtype);
      const { target, flat } = own.parameters;
      const optimizer = new SGD(target, flat, { lr });
      // 2^30 × gradients of 1 is no float16: the first steps are skipped until the scale has come down.
      const scaler = new GradScaler(GivenLoss.primitives(own.parameters), {
        enabled: dtype === "float16",
        initScale: 2 ** 30,
        growthInterval: 5,
        outcomeSchedule: false,
      });
      const rates: number[] = [];
      let steps = 0;
      for (; rates.length < 20; steps++) {
        optimizer.zeroGrad();
        scaler.scale(own.loss(noise(total, steps))).backward();
        if ((await scaler.getScale()) > 2 ** 16)
          own.parameters.setGradients(noise(total, 0).with(0, Infinity));
        scaler.step(optimizer);
        if (scaler.enabled) scaler.update();
        const [applied, , rate] = await target.read(optimizer.lastControl as Binding<object>);
        if (applied) rates.push(rate as number);
      }
      return { rates, skipped: steps - rates.length };
    };
    const runs = {
      float32: await trace("float32"),
      bfloat16: await trace("bfloat16"),
      float16: await trace("float16"),
    };
    expect(runs.float32.rates).toEqual(
      Array.from({ length: 20 }, (_, step) => Math.fround(lr(step))),
    );
    expect(runs.bfloat16).toEqual(runs.float32);
    expect(runs.float16.rates).toEqual(runs.float32.rates);
    expect([runs.float32.skipped, runs.float16.skipped > 14]).toEqual([0, true]);
  });
});
