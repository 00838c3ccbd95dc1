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
import { labelWeights, nllLoss, nllLossBackward } from "./nll.js";

interface Case {
  readonly rows: number;
  readonly classes: number;
  readonly storage?: "float32" | HalfDType;
  readonly isWeighted?: boolean;
  readonly ignoreIndex?: number;
}

const cases: readonly Case[] = [
  { rows: 128, classes: 10, isWeighted: true, ignoreIndex: 3 },
  { rows: 5, classes: 3 },
  { rows: 7, classes: 4, ignoreIndex: -100 },
  { rows: 1, classes: 1, isWeighted: true },
  { rows: 0, classes: 5 },
  { rows: 9, classes: 11, storage: "float16", isWeighted: true },
  { rows: 6, classes: 8, storage: "bfloat16", ignoreIndex: 0 },
];

/** Every class, -100 and one invalid label. */
function operandsOf({ rows, classes, storage: dtype = "float32" }: Case) {
  const labels = Uint32Array.from({ length: rows }, (_, row) => (row * 5 + 1) % classes);
  if (rows > 4) labels.set([-100, classes], 2);
  return {
    input: { values: testValues(rows * classes), dtype },
    labels: { values: labels, dtype: "uint32" },
    weight: { values: testValues(classes, 2), dtype },
    lossGradient: { values: testValues(rows, 3), dtype },
    losses: { values: rows, dtype },
    inputGradient: { values: rows * classes, dtype },
    out: { values: rows },
  } as const;
}

const launchesOf =
  (attributes: Case): Launches<ReturnType<typeof operandsOf>> =>
  (target, { weight, ...others }) => {
    const operands = attributes.isWeighted ? { ...others, weight } : others;
    target.launch(nllLoss(operands, attributes));
    target.launch(nllLossBackward(operands, attributes));
    target.launch(labelWeights(operands, attributes));
  };

const toleranceOf = ({ storage = "float32" }: Case) => ({
  relative: 2 * unitRoundoff[storage],
  absolute: 0,
});

const tiers = await testTiers();

describe("negative log-likelihood", () => {
  it("on the CPU is what its formula says", () => {
    const found = cases.flatMap((attributes) => {
      const { rows, classes, isWeighted, ignoreIndex } = attributes;
      const got = runOnCpu(operandsOf(attributes), launchesOf(attributes));
      const want = { losses: [] as number[], inputGradient: [] as number[], out: [] as number[] };
      for (let row = 0; row < rows; row++) {
        const label = got.labels[row] as number;
        const isIgnored = ignoreIndex !== undefined && label === ignoreIndex >>> 0;
        const gain = isWeighted ? (got.weight[label] as number) : 1;
        const of = (value: number): number =>
          isIgnored ? 0 : label < classes ? gain * value : Number.NaN;
        want.losses.push(of(-(got.input[row * classes + label] as number)));
        want.out.push(of(1));
        for (let c = 0; c < classes; c++)
          want.inputGradient.push(of(c === label ? -(got.lossGradient[row] as number) : 0));
      }
      return (["losses", "inputGradient", "out"] as const).flatMap((name) =>
        mismatches(
          got[name].map((v) => v + 0),
          want[name].map((v) => v + 0),
          toleranceOf(attributes),
        ),
      );
    });
    expect(found).toEqual([]);
  });

  it.each(tiers)("on the GPU, %s tier, equals the reference", async (tier) => {
    const device = await requestTestDevice({ tier });
    const found: string[] = [];
    for (const attributes of cases) {
      const tolerance = toleranceOf(attributes);
      const tolerances = { losses: tolerance, inputGradient: tolerance, out: tolerance };
      found.push(
        ...(await deviceMismatches(
          device,
          operandsOf(attributes),
          launchesOf(attributes),
          tolerances,
        )),
      );
    }
    expect(found).toEqual([]);
  });
});
