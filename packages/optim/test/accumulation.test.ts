import { GradScaler } from "@halfstep/grad-scaler";
import { ampPrimitives } from "@halfstep/kernels/amp";
import { describe, expect, it } from "vitest";
import { averageGradients, SGD } from "../src/index.js";
import { noise, Parameters, targets, total } from "./targets.js";

describe.each(await targets())("gradients of sums on the %s", (_, make) => {
  it("become those of the mean over all tokens, however they were cut into batches", async () => {
    const target = await make();
    const parameters = new Parameters(target, noise(total, 1).fill(0));
    const optimizer = new SGD(target, parameters.flat, { lr: 1 });
    const scaler = new GradScaler(ampPrimitives(target), { outcomeSchedule: false });
    // What 37 tokens leave, each with a gradient of its own, under a scale of 2^16.
    const tokens = Array.from({ length: 37 }, (_, t) => noise(total, 10 + t));
    const sums = noise(total, 0).map((_, i) =>
      tokens.reduce((sum, g) => sum + (g[i] as number), 0),
    );
    parameters.setGradients(sums.map((sum) => sum * 2 ** 16));
    averageGradients(optimizer, tokens.length);
    scaler.assumeScaled(optimizer);
    scaler.step(optimizer);
    scaler.update();
    const error = (await parameters.values()).map((p, i) => Math.abs(p + (sums[i] as number) / 37));
    expect(Math.max(...error)).toBeLessThan(1e-7);

    parameters.setGradients(noise(total, 2));
    averageGradients(optimizer, 8);
    expect(await parameters.gradients()).toEqual(noise(total, 2).map((g) => g / 8));
    const bad = [Number.NaN, Infinity, -Infinity, 2 ** 127];
    parameters.setGradients(noise(total, 2).map((g, i) => bad[i] ?? g));
    averageGradients(optimizer, 2);
    expect((await parameters.gradients()).slice(0, 4)).toEqual([
      Number.NaN,
      Infinity,
      -Infinity,
      2 ** 126,
    ]);
    for (const count of [0, -1, Number.NaN, Infinity])
      expect(() => averageGradients(optimizer, count)).toThrow(`count is ${count}`);
  });
});
