import { requestTestDevice, testTiers } from "@halfstep/device/testing";
import { describe, expect, it } from "vitest";
import { type Launches, mismatches, runOnCpu, runOnGpu, testValues } from "../../test/harness.js";
import { clipPartials, partialsEach } from "./clip-partials.js";
import { stepControl } from "./step-control.js";

const length = 300_003;
const ranges = [
  { offset: 0, length: 5 },
  { offset: 64, length: length - 64 },
] as const;
const inverse = 2 ** -4;

function operandsOf(gradients: Float32Array, foundInf = 0) {
  return {
    gradients: { values: gradients },
    foundInf: { values: [foundInf] },
    scale: { values: [1 / inverse, inverse] },
    applied: { values: [65_536 * 3 + 7], dtype: "uint32" as const },
    table: { values: [1, 2, 3, 4, 0.5, 6, 7, 8] },
    control: { values: 12 },
    partials: { values: ranges.length * partialsEach },
  };
}

type Operands = ReturnType<typeof operandsOf>;

const launches =
  (maxNorm: number | undefined): Launches<Operands> =>
  (target, named) => {
    const { gradients: x, scale, partials, table, control } = named;
    for (const [part, range] of ranges.entries())
      target.launch(clipPartials({ x, scale: scale.buffer, partials }, { ...range, part }));
    const buffers = {
      foundInf: named.foundInf.buffer,
      scale: scale.buffer,
      applied: named.applied.buffer,
    };
    const clip = maxNorm === undefined ? {} : { clip: { partials, parts: 2, maxNorm, eps: 1e-6 } };
    target.launch(stepControl({ ...buffers, table, control }, { lr: 0.25, ...clip }));
  };

const gradients = testValues(length, 1);
// What lies between the ranges does not count.
gradients.fill(Number.NaN, 5, 64);
const norm = Math.sqrt(
  ranges.reduce(
    (sum, range) =>
      gradients
        .subarray(range.offset, range.offset + range.length)
        .reduce((s, g) => s + (g * inverse) ** 2, sum),
    0,
  ),
);
const row = [0.5, 6, 7, 8];
const counted = [7, 3];

describe.each(["CPU", ...(await testTiers())] as const)("control words, %s", (where) => {
  const run = async (operands: Operands, maxNorm?: number) => {
    if (where === "CPU") return runOnCpu(operands, launches(maxNorm));
    return runOnGpu(await requestTestDevice({ tier: where }), operands, launches(maxNorm));
  };
  const near = { relative: 1e-5, absolute: 0 };

  it("clip by the norm of all ranges", async () => {
    for (const maxNorm of [0.5, 1e9]) {
      const { control, applied } = await run(operandsOf(gradients), maxNorm);
      const factor = Math.min(1, maxNorm / (norm + 1e-6));
      const want = [1, inverse * factor, 0.125, 0, ...row, norm, factor, ...counted];
      expect(mismatches(control, want, near)).toEqual([]);
      expect(applied[0]).toBe(65_536 * 3 + 8);
    }
  });

  it("say what to skip, and do not count it", async () => {
    for (const bad of [1, Number.NaN]) {
      const { control, applied } = await run(operandsOf(gradients, bad));
      expect([...control]).toEqual([0, inverse, 0.125, 0, ...row, 0, 1, ...counted]);
      expect(applied[0]).toBe(65_536 * 3 + 7);
    }
  });

  it("make nothing of infinite norms, and NaN of NaN", async () => {
    const infinite = await run(operandsOf(gradients.with(0, Infinity)), 1);
    expect(infinite.control.subarray(8, 10)).toEqual(Float32Array.of(Infinity, 0));
    const broken = await run(operandsOf(gradients.with(length - 1, Number.NaN)), 1);
    expect(broken.control.subarray(8, 10)).toEqual(Float32Array.of(Number.NaN, Number.NaN));
    const none = await run(operandsOf(new Float32Array(length)), 1);
    expect(none.control.subarray(8, 10)).toEqual(Float32Array.of(0, 1));
  });
});
