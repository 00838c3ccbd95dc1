import { pairedDifference, type StudyRun } from "@halfstep/trainer";
import { beforeAll, describe, expect, test } from "vitest";
import { mixedPrecisions, trainVariant, variants, withoutMasters } from "../src/parity.js";
import { realDigits } from "./mnist.js";

const seeds = [0, 1, 2];
/** Largest mean difference from float32, paired by seed: percentage points, and nats. */
const gate = { metric: 0.1, loss: 0.001 };
/** Without masters these lose 0.0034 nats, and twice as many 0.0030: the gate sees as much in half the time. The study has all. */
const images = 15_000;
const runs: StudyRun[] = [];

const difference = (variant: string, of: "metric" | "loss"): number =>
  pairedDifference(runs, variant, "float32", of).mean;

describe("three seeds, paired", { timeout: 900_000 }, () => {
  beforeAll(async () => {
    for (const variant of variants)
      for (const seed of seeds) {
        const outcome = await trainVariant(variant, seed, {
          data: realDigits,
          limit: images,
          epochs: 1,
          batchSize: 128,
          lr: 3e-3,
        });
        runs.push({ variant: variant.name, seed, machine: "here", outcome });
      }
    console.table(runs.map(({ outcome, ...run }) => ({ ...run, ...outcome })));
  }, 900_000);

  test("float32 itself learns the digits", () => {
    const poor = runs.filter(
      (run) => run.variant === "float32" && !(Number(run.outcome.metric) >= 97),
    );
    expect(poor).toEqual([]);
  });

  test.each(mixedPrecisions)("$name AMP does as well as float32", ({ name }) => {
    expect(Math.abs(difference(name, "metric"))).toBeLessThanOrEqual(gate.metric);
    expect(Math.abs(difference(name, "loss"))).toBeLessThanOrEqual(gate.loss);
  });

  test("the gate sees the lack of masters", () => {
    expect(difference(withoutMasters.name, "loss")).toBeGreaterThan(gate.loss);
  });
});
