import { describe, expect, it } from "vitest";
import type { StepMetrics } from "../summary.js";
import { rawCurve, smoothCurve } from "./curves.js";

const line = (
  precision: StepMetrics["precision"],
  step: number,
  loss: number | null,
): StepMetrics => ({
  precision,
  step,
  epoch: 1,
  loss,
  applied: loss !== null,
  scale: 1,
  lr: 0.1,
});

describe("rawCurve", () => {
  it("keeps every finite loss of a short run", () => {
    expect(
      rawCurve([line("float16", 1, 2), line("float16", 2, null), line("bfloat16", 1, 3)]),
    ).toEqual([
      { precision: "float16", step: 1, loss: 2 },
      { precision: "bfloat16", step: 1, loss: 3 },
    ]);
  });

  it("averages neighbours of a long run, keeping its mean", () => {
    const run = Array.from({ length: 1000 }, (_, index) => line("float32", index + 1, index));
    const curve = rawCurve(run, 100);
    expect(curve).toHaveLength(100);
    expect(curve[0]).toEqual({ precision: "float32", step: 6, loss: 4.5 });
    expect(curve.reduce((sum, { loss }) => sum + loss, 0) / 100).toBeCloseTo(499.5);
  });

  it("is empty without a finite loss", () => {
    expect(rawCurve([line("float16", 1, null)])).toEqual([]);
  });
});

describe("smoothCurve", () => {
  const points = (precision: string, ...losses: number[]) =>
    losses.map((loss, index) => ({ precision, step: index + 1, loss }));

  it("leaves a constant as it is from the first point on", () => {
    const smooth = smoothCurve(points("float32", 5, 5, 5), 10);
    expect(smooth.map(({ loss }) => loss)).toEqual(
      [5, 5, 5].map((value) => expect.closeTo(value, 12)),
    );
  });

  it("weighs a value half after its half-life, each run on its own", () => {
    const smooth = smoothCurve([...points("a", 0, 1), ...points("b", 7)], 1);
    expect(smooth.map(({ loss }) => loss)).toEqual([0, expect.closeTo(2 / 3, 12), 7]);
  });
});
