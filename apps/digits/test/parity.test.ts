import { beforeAll, describe, expect, test } from "vitest";
import {
  float32,
  meanDifference,
  mixedPrecisions,
  type Outcome,
  trainVariant,
  withoutMasters,
} from "../src/parity.js";
import { realDigits } from "./mnist.js";

const seeds = [0, 1, 2];
/** Largest mean difference from float32, paired by seed: percentage points, and nats. */
const gate = { accuracy: 0.1, loss: 0.001 };
const outcomes: Outcome[] = [];

describe("three seeds, paired", { timeout: 900_000 }, () => {
  beforeAll(async () => {
    for (const variant of [float32, ...mixedPrecisions, withoutMasters])
      for (const seed of seeds)
        outcomes.push(
          await trainVariant(variant, seed, {
            data: realDigits,
            limit: 30_000,
            epochs: 1,
            batchSize: 128,
            lr: 3e-3,
          }),
        );
    console.table(outcomes);
  }, 900_000);

  test("float32 itself learns the digits", () => {
    const poor = outcomes.filter((o) => o.variant === "float32" && o.accuracy < 98);
    expect(poor).toEqual([]);
  });

  test.each(mixedPrecisions)("$name AMP does as well as float32", ({ name }) => {
    expect(Math.abs(meanDifference(outcomes, name, "accuracy"))).toBeLessThanOrEqual(gate.accuracy);
    expect(Math.abs(meanDifference(outcomes, name, "loss"))).toBeLessThanOrEqual(gate.loss);
  });

  test("the gate sees the lack of masters", () => {
    expect(meanDifference(outcomes, withoutMasters.name, "loss")).toBeGreaterThan(gate.loss);
  });
});
