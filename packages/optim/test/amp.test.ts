import type { Binding } from "@halfstep/device";
import { requestTestDevice, testTiers } from "@halfstep/device/testing";
import {
  accumulationWindow,
  GradScaler,
  initialScaleState,
  nextScaleState,
  scaledValue,
  scalerRule,
} from "@halfstep/grad-scaler";
import { accumulate, deviceTarget, elementwise, identity, sub } from "@halfstep/kernels";
import { ampPrimitives } from "@halfstep/kernels/amp";
import { describe, expect, it } from "vitest";
import { AdamW, clipGradNorm, oneCycle, SGD } from "../src/index.js";
import { type AnyTarget, noise, Parameters, targets, total } from "./targets.js";

/** A tiny model whose whole step is launches: each parameter is pulled towards a goal of its own. */
class Pull {
  readonly target: AnyTarget;
  readonly parameters: Parameters;
  readonly #goal: Parameters;
  readonly #difference: Binding<object>;

  constructor(target: AnyTarget) {
    this.target = target;
    this.parameters = new Parameters(target, noise(total, 1));
    this.#goal = new Parameters(target, noise(total, 2));
    this.#difference = { ...this.#whole(target.allocate(4096)) };
  }

  /** Gradients of the loss ½ Σ w (p − goal)², which takes `scale` as its own gradient. */
  backward(scale?: (loss: Binding<object>) => Binding<object>, { adds = false } = {}): void {
    const { flat } = this.parameters;
    const shape = [this.#difference.length];
    const difference = { ...this.#difference, shape };
    const values = { ...this.#whole(flat.values), shape };
    const goal = { ...this.#whole(this.#goal.flat.values), shape };
    this.target.launch(elementwise(sub, [values, goal], difference));
    const scaled = scale ? scale(this.#difference) : this.#difference;
    const gradients = { ...this.#whole(flat.gradients), shape };
    this.target.launch(
      adds
        ? accumulate({ input: scaled, out: this.#whole(flat.gradients) })
        : elementwise(identity, [{ ...scaled, shape }], gradients),
    );
  }

  #whole(buffer: object): Binding<object> {
    const { segments } = this.parameters.flat;
    const length = (segments.at(-1)?.offset ?? 0) + 1;
    return { buffer, offset: 0, length, dtype: "float32" };
  }
}

describe.each(await targets())("loss scaling on the %s", (_, make) => {
  const optimizers = [
    ["AdamW", ({ flat }: Parameters, target: AnyTarget) => new AdamW(target, flat, { lr: 0.05 })],
    [
      "SGD",
      ({ flat }: Parameters, target: AnyTarget) =>
        new SGD(target, flat, { lr: 0.05, momentum: 0.9, nesterov: true, weightDecay: 0.01 }),
    ],
  ] as const;

  it.each(optimizers)("by powers of two changes no bit of training with %s", async (_name, of) => {
    const results: string[] = [];
    for (const mode of ["none", "fused", "unscaled"] as const) {
      const target = await make();
      const model = new Pull(target);
      const optimizer = of(model.parameters, target);
      // The scale grows on every third step: through 2^16 … 2^30.
      const scaler = new GradScaler(ampPrimitives(target), {
        growthInterval: 3,
        enabled: mode !== "none",
        outcomeSchedule: false,
      });
      for (let step = 0; step < 40; step++) {
        model.backward((loss) => scaledValue(scaler.scale(loss)));
        if (mode === "unscaled") {
          scaler.unscale(optimizer);
          clipGradNorm(optimizer, 1e9);
        }
        scaler.step(optimizer);
        scaler.update();
      }
      if (mode !== "none") expect(await scaler.getScale()).toBe(2 ** (16 + 13));
      results.push(JSON.stringify(await model.parameters.values()));
    }
    expect(new Set(results).size).toBe(1);
    expect(results[0]).not.toBe(JSON.stringify(noise(total, 1)));
  });

  it("by powers of two changes no bit of accumulation with clipping", async () => {
    const train = async (enabled: boolean): Promise<string> => {
      const target = await make();
      const model = new Pull(target);
      const optimizer = new AdamW(target, model.parameters.flat, { lr: 0.05 });
      const options = { growthInterval: 3, enabled, outcomeSchedule: false } as const;
      const scaler = new GradScaler(ampPrimitives(target), options);
      const window = accumulationWindow(scaler, optimizer, { samples: 7 });
      for (let step = 0; step < 12; step++) {
        for (const samples of [2, 4, 1]) {
          model.backward((loss) => scaledValue(window.scale(loss, samples)), { adds: true });
        }
        window.step({ clip: (each) => clipGradNorm(each, 0.5) });
      }
      if (enabled) expect(await scaler.getScale()).toBe(2 ** (16 + 4));
      return JSON.stringify([await model.parameters.values(), await optimizer.stateDict()]);
    };
    const [plain, scaled] = [await train(false), await train(true)];
    expect(scaled).toBe(plain);
  });

  it("by powers of two changes no bit of two optimizers with two losses of their own scales", async () => {
    const train = async (enabled: boolean): Promise<string> => {
      const target = await make();
      const models = [new Pull(target), new Pull(target)] as const;
      const optimizers = [
        new AdamW(target, models[0].parameters.flat, { lr: 0.05 }),
        new SGD(target, models[1].parameters.flat, { lr: 0.1, momentum: 0.9 }),
      ] as const;
      const scaler = new GradScaler(ampPrimitives(target), {
        losses: [{ initScale: 2 ** 10 }, { initScale: 2 ** 20, growthInterval: 2 }],
        ...{ enabled, outcomeSchedule: false },
      });
      for (let step = 0; step < 9; step++) {
        for (const optimizer of optimizers) optimizer.zeroGrad();
        for (const lossId of [0, 1]) {
          for (const [i, model] of models.entries()) {
            const options = { lossId, optimizers: optimizers[i] as AdamW<object> };
            model.backward((loss) => scaledValue(scaler.scale(loss, options)), { adds: true });
          }
        }
        scaler.step(optimizers);
        scaler.update();
      }
      if (enabled) {
        const scales = await Promise.all([scaler.getScale(0), scaler.getScale(1)]);
        expect(scales).toEqual([2 ** 10, 2 ** 24]);
        expect((await scaler.drain()).every(({ status }) => status === "applied")).toBe(true);
      }
      return JSON.stringify(await Promise.all(models.map(({ parameters }) => parameters.values())));
    };
    const [plain, scaled] = [await train(false), await train(true)];
    expect(scaled).toBe(plain);
  });

  it("skips overflowing steps: they are as if they had not been", async () => {
    const results: string[] = [];
    const outcomes: boolean[] = [];
    const schedule = oneCycle({ maxLr: 0.1, totalSteps: 12 });
    for (const overflows of [false, true]) {
      const target = await make();
      const model = new Pull(target);
      const optimizer = new AdamW(target, model.parameters.flat, { lr: schedule });
      const scaler = new GradScaler(ampPrimitives(target), { outcomeSchedule: false });
      for (let step = 0; step < 15; step++) {
        const bad = step % 5 === 1;
        if (bad && !overflows) continue;
        model.backward((loss) => scaledValue(scaler.scale(loss)));
        if (bad) model.parameters.setGradients(noise(total, 3).with(88, Number.NaN));
        scaler.step(optimizer);
        scaler.update();
      }
      for (const { status } of overflows ? await scaler.drain() : [])
        outcomes.push(status === "applied");
      expect(await optimizer.appliedSteps()).toEqual([12]);
      results.push(JSON.stringify([await model.parameters.values(), await optimizer.stateDict()]));
    }
    expect(results[0]).toBe(results[1]);
    expect(outcomes).toEqual(Array.from({ length: 15 }, (_, step) => step % 5 !== 1));
  });
});

describe.each(await testTiers())("100 steps on the GPU, %s tier", (tier) => {
  it("wait for nothing, and their outcomes are the truth", async () => {
    const device = await requestTestDevice({ tier });
    const target = deviceTarget(device);
    const model = new Pull(target as AnyTarget);
    const optimizer = new AdamW(target as AnyTarget, model.parameters.flat, { lr: 0.01 });
    const options = { growthInterval: 5, initScale: 2 ** 10 };
    const scaler = new GradScaler(ampPrimitives(target as AnyTarget), options);
    const bad = model.parameters.flat.gradients as GPUBuffer;
    const seen: string[] = [];
    const listening = (async () => {
      for await (const { step, status, scaleBefore, scaleAfter, cause } of scaler.outcomes()) {
        seen.push([step, status, scaleBefore, scaleAfter, cause?.pass].join(" "));
        if (step === 100) return;
      }
    })();
    const truth: string[] = [];
    const rule = scalerRule(undefined, options);
    let state = initialScaleState(rule);
    const before = device.counters.snapshot();
    for (let step = 1; step <= 100; step++) {
      const overflows = noise(100, 5)[step - 1] as number;
      model.backward((loss) => scaledValue(scaler.scale(loss)));
      if (overflows > 0.7) {
        target.submit();
        device.write(bad, 4 * (step % 77), Float32Array.of(Number.NaN));
      }
      scaler.step(optimizer);
      scaler.update();
      target.submit();
      const next = nextScaleState(state, overflows > 0.7, rule);
      const [status, pass] = overflows > 0.7 ? ["skipped", "backward"] : ["applied", undefined];
      truth.push([step, status, state.scale, next.scale, pass].join(" "));
      state = next;
      // Between steps a loop gives way to the event loop, as any that awaits does.
      await new Promise<void>((resolve) => setTimeout(resolve));
    }
    const { hostWaits, backpressureWaits } = device.counters.since(before);
    expect([hostWaits, backpressureWaits]).toEqual([0, 0]);
    const skipped = truth.filter((line) => line.includes("skipped")).length;
    const rest = await scaler.drain();
    await listening;
    expect(seen).toEqual(truth);
    expect([rest.length, skipped > 5]).toEqual([100, true]);
    expect(await optimizer.appliedSteps()).toEqual([100 - skipped]);
  });
});

describe.each(await testTiers())("a step on the GPU, %s tier", (tier) => {
  it("waits for nothing, and in steady state creates nothing", async () => {
    const device = await requestTestDevice({ tier });
    const target = deviceTarget(device);
    const model = new Pull(target as AnyTarget);
    const optimizer = new AdamW(target as AnyTarget, model.parameters.flat, {
      lr: oneCycle({ maxLr: 0.1, totalSteps: 100 }),
    });
    const scaler = new GradScaler(ampPrimitives(target as AnyTarget), { outcomeSchedule: false });
    const step = (): void => {
      model.backward((loss) => scaledValue(scaler.scale(loss)));
      scaler.step(optimizer);
      scaler.update();
      target.submit();
    };
    for (let i = 0; i < 3; i++) step();
    const before = device.counters.snapshot();
    for (let i = 0; i < 20; i++) step();
    // Difference, scaled loss and copy are the model's; check, control, AdamW and the scale's update are ours.
    expect(device.counters.since(before)).toMatchObject({
      hostWaits: 0,
      backpressureWaits: 0,
      submits: 20,
      dispatches: 20 * 7,
      buffersCreated: 0,
      bindGroupsCreated: 0,
      pipelinesCreated: 0,
    });
    await device.settled();
  });
});
