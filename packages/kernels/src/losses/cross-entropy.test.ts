import type { HalfDType } from "@halfstep/device";
import { requestTestDevice, testTiers } from "@halfstep/device/testing";
import { describe, expect, it } from "vitest";
import {
  deviceMismatches,
  type Launches,
  mismatches,
  type Results,
  runOnCpu,
  testValues,
  unitRoundoff,
} from "../../test/harness.js";
import { softmaxCrossEntropy, softmaxCrossEntropyBackward } from "./cross-entropy.js";

interface Case {
  readonly rows: number;
  readonly classes: number;
  readonly storage?: "float32" | HalfDType;
  readonly labelSmoothing?: number;
  readonly isWeighted?: boolean;
  readonly ignoreIndex?: number;
}

/** Plain losses are in softmax.test.ts. */
const cases: readonly Case[] = [
  { rows: 9, classes: 12, labelSmoothing: 0.25, isWeighted: true, ignoreIndex: 3 },
  { rows: 6, classes: 7, labelSmoothing: 0.25, isWeighted: true, storage: "float16" },
];

const more: readonly Case[] = [
  { rows: 7, classes: 8, labelSmoothing: 0.1, storage: "bfloat16" },
  { rows: 5, classes: 3, labelSmoothing: 1 },
  { rows: 6, classes: 4, isWeighted: true, ignoreIndex: 0 },
  { rows: 5, classes: 13, isWeighted: true, storage: "float16" },
  { rows: 1, classes: 1, labelSmoothing: 0.5, isWeighted: true },
  { rows: 0, classes: 5, labelSmoothing: 0.5, isWeighted: true },
  // A subgroup shares each row.
  { rows: 5, classes: 260, labelSmoothing: 0.25, isWeighted: true, ignoreIndex: 3 },
  { rows: 6, classes: 301, labelSmoothing: 0.25, isWeighted: true },
];

function operandsOf({ rows, classes, storage: dtype = "float32" }: Case) {
  const labels = Uint32Array.from({ length: rows }, (_, row) => (row * 5 + 1) % classes);
  if (rows > 4) labels[2] = classes;
  return {
    logits: { values: testValues(rows * classes).map((v) => v * 8 + 512), dtype },
    labels: { values: labels, dtype: "uint32" },
    weight: { values: testValues(classes, 2).map((v) => Math.abs(v) + 0.125), dtype },
    lossGradient: { values: testValues(rows, 4) },
    losses: { values: rows },
    logitsGradient: { values: rows * classes, dtype },
  } as const;
}

const launchesOf =
  (attributes: Case): Launches<ReturnType<typeof operandsOf>> =>
  (target, { weight, ...others }) => {
    const operands = attributes.isWeighted ? { ...others, weight } : others;
    target.launch(softmaxCrossEntropy(operands, attributes));
    target.launch(softmaxCrossEntropyBackward(operands, { ...attributes, reduction: "none" }));
  };

/** Targets as probabilities, weighted class by class: another way to the same numbers, in float64. */
function expected(
  { rows, classes, labelSmoothing = 0, isWeighted, ignoreIndex }: Case,
  { logits, labels, weight, lossGradient }: Results<ReturnType<typeof operandsOf>>,
) {
  const losses: number[] = [];
  const logitsGradient: number[] = [];
  for (let r = 0; r < rows; r++) {
    const x = Array.from(logits.subarray(r * classes, (r + 1) * classes));
    const label = labels[r] as number;
    const top = Math.max(...x);
    const logTotal = top + Math.log(x.reduce((sum, v) => sum + Math.exp(v - top), 0));
    const counted = label === ignoreIndex ? 0 : label < classes ? 1 : Number.NaN;
    const target = x.map((_, c) => {
      const probability = (c === label ? 1 - labelSmoothing : 0) + labelSmoothing / classes;
      return counted * probability * (isWeighted ? (weight[c] as number) : 1);
    });
    const sum = target.reduce((a, b) => a + b, 0);
    losses.push(target.reduce((loss, q, c) => loss + q * (logTotal - (x[c] as number)), 0));
    const g = lossGradient[r] as number;
    for (let c = 0; c < classes; c++)
      logitsGradient.push(
        (Math.exp((x[c] as number) - logTotal) * sum - (target[c] as number)) * g,
      );
  }
  return { losses, logitsGradient };
}

const toleranceOf = ({ storage = "float32" }: Case, margin: number) => ({
  relative: margin * 2 ** -23 + (storage === "float32" ? 0 : 2 * unitRoundoff[storage]),
  absolute: margin * 2 ** -23,
});

const title = (attributes: Case): string => JSON.stringify(attributes);

it("cross-entropy of smoothed and weighted targets equals a float64 computation on the CPU", () => {
  const found = [...cases, ...more].flatMap((attributes) => {
    const results = runOnCpu(operandsOf(attributes), launchesOf(attributes));
    return Object.entries(expected(attributes, results)).flatMap(([name, want]) =>
      mismatches(results[name as "losses"], want, toleranceOf(attributes, 4)).map(
        (text) => `${title(attributes)} ${name}${text}`,
      ),
    );
  });
  expect(found).toEqual([]);
});

it("a mean over rows of unknown weight is refused", () => {
  const attributes = { rows: 4, classes: 5 };
  expect(() =>
    runOnCpu(operandsOf(attributes), (_, operands) =>
      softmaxCrossEntropyBackward(operands, { ...attributes, reduction: "mean" }),
    ),
  ).toThrow('use reduction "none"');
});

describe.each(await testTiers())("cross-entropy of such targets on the GPU, %s tier", (tier) => {
  it("equals the reference", async () => {
    const device = await requestTestDevice({ tier });
    const found: string[] = [];
    // Programs take long to compile: most on one tier.
    for (const attributes of tier !== "packed" ? [...cases, ...more] : cases) {
      const tolerance = toleranceOf(attributes, 32);
      const texts = await deviceMismatches(device, operandsOf(attributes), launchesOf(attributes), {
        losses: tolerance,
        logitsGradient: tolerance,
      });
      found.push(...texts.map((text) => `${title(attributes)} ${text}`));
    }
    expect(found).toEqual([]);
  });
});
