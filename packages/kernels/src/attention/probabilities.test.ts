import type { HalfDType } from "@halfstep/device";
import { requestTestDevice, testTiers } from "@halfstep/device/testing";
import { describe, expect, it } from "vitest";
import {
  deviceMismatches,
  type Launches,
  mismatches,
  runOnCpu,
  testValues,
  unitRoundoff,
} from "../../test/harness.js";
import { attentionProbabilities, attentionProbabilitiesBackward } from "./probabilities.js";

interface Case {
  readonly rows: number;
  readonly columns: number;
  readonly causalRows?: number;
  readonly storage?: "float32" | HalfDType;
}

/** With and without a mask; more rows than columns, and fewer; no rows. */
const cases: readonly Case[] = [
  { rows: 24, columns: 12, causalRows: 12 },
  { rows: 21, columns: 7, causalRows: 7, storage: "float16" },
  { rows: 10, columns: 9, causalRows: 5 },
  { rows: 9, columns: 4, causalRows: 9 },
  { rows: 5, columns: 16, storage: "bfloat16" },
  { rows: 6, columns: 5 },
  { rows: 0, columns: 5, causalRows: 3 },
];

const scale = 0.25;

/** Row 1 is masked as a whole, by −∞, and row 2 in part. */
function operandsOf({ rows, columns, storage: dtype = "float32" }: Case) {
  const length = rows * columns;
  const scores = testValues(length).map((v, i) => v * (i % 3 === 0 ? 1024 : 8));
  if (rows > 2) scores.fill(-Infinity, columns, 2 * columns + 2);
  return {
    scores: { values: scores },
    gradient: { values: testValues(length, 2), dtype },
    probabilities: { values: length, dtype },
    scoresGradient: { values: length, dtype },
  } as const;
}

const launchesOf =
  (attributes: Case): Launches<ReturnType<typeof operandsOf>> =>
  (target, operands) => {
    target.launch(attentionProbabilities(operands, { ...attributes, scale }));
    target.launch(attentionProbabilitiesBackward(operands, { ...attributes, scale }));
  };

const toleranceOf = ({ storage = "float32" }: Case, margin: number) => ({
  relative: margin * 2 ** -23 + (storage === "float32" ? 0 : 2 * unitRoundoff[storage]),
  absolute: margin * 2 ** -23,
});

const tiers = await testTiers();

describe("attentionProbabilities", () => {
  it("on the CPU equal a float64 computation", () => {
    const found = cases.flatMap((attributes) => {
      const { rows, columns, causalRows } = attributes;
      const got = runOnCpu(operandsOf(attributes), launchesOf(attributes));
      const probabilities: number[] = [];
      const gradients: number[] = [];
      for (let row = 0; row < rows; row++) {
        const at = (name: "scores" | "probabilities" | "gradient"): number[] =>
          Array.from(got[name].subarray(row * columns, (row + 1) * columns));
        const scores = at("scores").map((v, c) =>
          causalRows && c > row % causalRows ? -Infinity : v * scale,
        );
        const top = Math.max(...scores);
        const weights = scores.map((v) => (v === -Infinity ? 0 : Math.exp(v - top)));
        const total = weights.reduce((a, b) => a + b, 0);
        probabilities.push(...weights.map((w) => (total === 0 ? 0 : w / total)));
        // The gradient reads the stored values.
        const [p, g] = [at("probabilities"), at("gradient")];
        const dot = p.reduce((sum, v, c) => sum + v * (g[c] as number), 0);
        gradients.push(...p.map((v, c) => v * ((g[c] as number) - dot) * scale));
      }
      const tolerance = toleranceOf(attributes, 2);
      return [
        ...mismatches(got.probabilities, probabilities, tolerance),
        ...mismatches(got.scoresGradient, gradients, tolerance),
      ];
    });
    expect(found).toEqual([]);
  });

  it.each(tiers)("on the GPU, %s tier, equal the reference", async (tier) => {
    const device = await requestTestDevice({ tier });
    const found: string[] = [];
    for (const attributes of cases) {
      const tolerance = toleranceOf(attributes, 32);
      const tolerances = { probabilities: tolerance, scoresGradient: tolerance };
      const operands = operandsOf(attributes);
      found.push(...(await deviceMismatches(device, operands, launchesOf(attributes), tolerances)));
    }
    const operands = operandsOf(cases[0] as Case);
    operands.scores.values[0] = Number.NaN;
    const tolerance = { probabilities: toleranceOf(cases[0] as Case, 32) };
    found.push(
      ...(await deviceMismatches(device, operands, launchesOf(cases[0] as Case), tolerance)),
    );
    expect(found).toEqual([]);
  });
});
