import { scaledValue } from "@halfstep/grad-scaler";
import { clipGradNorm, FP16Optimizer } from "@halfstep/optim";
import { grad } from "@halfstep/tensor";
import { describe, expect, test } from "vitest";
import { type Calls, finish, setUp } from "./players.js";

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
