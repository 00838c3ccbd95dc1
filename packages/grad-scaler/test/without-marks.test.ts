import { describe, expect, test } from "vitest";
import {
  accumulationWindow,
  float32Primitives,
  GradScaler,
  type ScaledOptimizer,
  scaledValue,
} from "../src/index.js";
import { mistakeOf } from "./mistake-of.js";
import { Sgd } from "./sgd.js";

const one = (): Float32Array => Float32Array.of(1);

/** A scaler, and an optimizer whose gradients nothing has scaled. */
function unscaled(options: ConstructorParameters<typeof GradScaler>[1] = {}): {
  scaler: GradScaler<Float32Array>;
  optimizer: Sgd;
} {
  const scaler = new GradScaler(float32Primitives, { initScale: 4, ...options });
  const optimizer = new Sgd([8]);
  optimizer.backward([4], one());
  return { scaler, optimizer };
}

describe("a step without any scaled loss", () => {
  test.each(["step", "unscale"] as const)("is refused by %s(), and changes nothing", (call) => {
    const { scaler, optimizer } = unscaled();
    expect(mistakeOf(() => scaler[call](optimizer))).toMatch(
      /^not-scaled: no loss was scaled since the last update\(\), .*call scale\(loss\).*assumeScaled/,
    );
    expect([optimizer.parameters[0], optimizer.gradient?.[0]]).toEqual([8, 4]);
    scaler.assumeScaled(optimizer);
    scaler.step(optimizer);
    scaler.update();
    expect(optimizer.parameters[0]).toBe(7);
  });

  test("is refused in every step, also after a saved state is loaded", async () => {
    const { scaler, optimizer } = unscaled();
    for (let i = 0; i < 2; i++) {
      optimizer.zeroGrad();
      optimizer.backward([1], scaledValue(scaler.scale(one())));
      scaler.step(optimizer);
      scaler.update();
      expect(mistakeOf(() => scaler.step(optimizer))).toMatch(/^not-scaled/);
      scaler.loadStateDict(await scaler.stateDict());
      expect(mistakeOf(() => scaler.step(optimizer))).toMatch(/^not-scaled/);
    }
  });

  test("is refused where a loss was only scaled for a window that was given up", () => {
    const { scaler, optimizer } = unscaled();
    const window = accumulationWindow(scaler, optimizer, { microSteps: 2 });
    optimizer.backward([1], scaledValue(window.scale(one())));
    window.reset();
    optimizer.backward([1], one());
    expect(mistakeOf(() => scaler.step(optimizer))).toMatch(/^not-scaled/);
  });

  test("is right where the scale is 1 for good, or scaling is disabled", () => {
    for (const options of [{ initScale: 1, dynamic: false }, { enabled: false }]) {
      const { scaler, optimizer } = unscaled(options);
      scaler.unscale(optimizer);
      scaler.step(optimizer);
      scaler.update();
      expect(optimizer.parameters[0]).toBe(4);
    }
  });

  test("is nothing where the optimizer has no gradients and may have none", () => {
    const { scaler, optimizer } = unscaled({ allowNoGrad: true });
    optimizer.zeroGrad();
    scaler.step(optimizer);
    scaler.update();
    expect(optimizer.parameters[0]).toBe(8);
  });
});

test("one scaled loss, or several, are for all optimizers and backward passes of a step", () => {
  const { scaler } = unscaled();
  const optimizers = [new Sgd([8]), new Sgd([8], true)] as const;
  for (const optimizer of optimizers)
    for (let i = 0; i < 2; i++) optimizer.backward([1], scaledValue(scaler.scale(one())));
  scaler.unscale(optimizers[0]);
  scaler.step(optimizers[0]);
  scaler.step(optimizers[1]);
  scaler.update();
  expect(optimizers.map(({ parameters }) => parameters[0])).toEqual([6, 6]);
});

const later: [string, () => unknown][] = [
  ["promise", async () => {}],
  ["promise", () => Promise.reject(new Error("of a callback that is refused"))],
  ["generator", function* () {}],
  ["generator", async function* () {}],
];

describe("clipping is synchronous", () => {
  test.each(later)("a %s is refused by clip()", (_, clip) => {
    const { scaler, optimizer } = unscaled();
    scaler.assumeScaled(optimizer);
    scaler.unscale(optimizer);
    expect(() => scaler.clip(optimizer, clip)).toThrow(
      new TypeError(
        "scaler.clip() takes a synchronous function, and this one returned a promise or generator: it would clip after the step.",
      ),
    );
    const disabled = new GradScaler(float32Primitives, { enabled: false });
    expect(() => disabled.clip(optimizer, clip)).toThrow(TypeError);
  });

  test.each(later)("a %s is refused by a window", (_, clip) => {
    const { scaler, optimizer } = unscaled();
    optimizer.zeroGrad();
    const window = accumulationWindow(scaler, optimizer, { microSteps: 1 });
    optimizer.backward([1], scaledValue(window.scale(one())));
    expect(() => window.step({ clip })).toThrow(
      "clip of window.step() takes a synchronous function, and this one returned a promise or generator",
    );
    expect(optimizer.parameters[0]).toBe(8);
  });

  test("any other result is passed on", () => {
    const { scaler, optimizer } = unscaled();
    scaler.assumeScaled(optimizer);
    scaler.unscale(optimizer);
    for (const result of [undefined, null, 3, "norm", optimizer, [1].values()])
      expect(scaler.clip(optimizer, () => result)).toBe(result);
  });
});

test("options that scale() and assumeScaled() do not have are refused", () => {
  const { scaler, optimizer } = unscaled();
  const wrong = { lossID: 3 } as object;
  expect(() => scaler.scale(one(), wrong)).toThrow(
    new TypeError("scale() has no option lossID: pass any of lossId, optimizers"),
  );
  expect(() => scaler.assumeScaled(optimizer, wrong)).toThrow(
    new TypeError("assumeScaled() has no option lossID: pass any of lossId"),
  );
});

test("an optimizer without gradients() is refused by name", () => {
  const { scaler } = unscaled();
  const optimizer = { step: () => {} } as unknown as ScaledOptimizer<Float32Array>;
  const message = "an optimizer without gradients(): a scaler needs this method";
  expect(() => scaler.step(optimizer)).toThrow(message);
  expect(() => scaler.unscale(optimizer)).toThrow(TypeError);
  expect(() => scaler.scale(one(), { optimizers: optimizer })).toThrow(message);
  expect(() => accumulationWindow(scaler, optimizer, { microSteps: 1 })).toThrow(message);
});
