import type { HalfDType, KernelView, LaunchTarget } from "@halfstep/device";
import { requestTestDevice, testTiers } from "@halfstep/device/testing";
import { describe, expect, it } from "vitest";
import {
  deviceMismatches,
  type Launches,
  mismatches,
  runOnCpu,
  runOnGpu,
  testValues,
  tiersInLanes,
  unitRoundoff,
  withHardware,
  withoutSubgroups,
} from "../../test/harness.js";
import { batchNormBackward } from "./backward.js";
import { batchNormNormalize } from "./normalize.js";
import { batchNormStatistics } from "./statistics.js";

interface Case {
  readonly rows: number;
  readonly channels: number;
  readonly storage?: "float32" | HalfDType;
  readonly activation?: "none" | "relu";
}

/** Quads and gathering; one chunk, a few, and so many that workgroups merge them. */
const cases: readonly Case[] = [
  { rows: 7000, channels: 8 },
  { rows: 300, channels: 16, activation: "relu" },
  { rows: 2, channels: 4 },
  { rows: 2500, channels: 3 },
  { rows: 37, channels: 5, activation: "relu" },
  { rows: 33, channels: 1 },
  { rows: 9001, channels: 1 },
  { rows: 1100, channels: 130, storage: "bfloat16" },
  { rows: 400, channels: 12, storage: "float16", activation: "relu" },
  { rows: 90, channels: 6, storage: "bfloat16" },
];

const eps = 1e-5;

const operandsOf = ({ rows, channels, storage = "float32" }: Case) =>
  ({
    // Far from zero, so that a variance by the mean of squares would lose most of its digits.
    input: { values: testValues(rows * channels, 1).map((v) => v + 5), dtype: storage },
    weight: { values: testValues(channels, 2) },
    bias: { values: testValues(channels, 3) },
    outGradient: { values: testValues(rows * channels, 4), dtype: storage },
    mean: { values: channels },
    variance: { values: channels },
    out: { values: rows * channels, dtype: storage },
    inputGradient: { values: rows * channels, dtype: storage },
    weightGradient: { values: channels },
    biasGradient: { values: channels },
    runningMean: { values: new Float32Array(channels).fill(0.25) },
    runningVariance: { values: new Float32Array(channels).fill(2) },
  }) as const;

const momentum = 0.1;

const launchesOf =
  (attributes: Case): Launches<ReturnType<typeof operandsOf>> =>
  (target, bindings) => {
    const { runningMean: mean, runningVariance: variance } = bindings;
    batchNormStatistics(target, { ...bindings, running: { mean, variance, momentum } }, attributes);
    target.launch(batchNormNormalize(bindings, { ...attributes, eps }));
    batchNormBackward(target, bindings, { ...attributes, eps });
  };

/** The textbook formulas in float64, one channel at a time. */
function expected(
  { rows, channels, activation }: Case,
  stored: Readonly<Record<"input" | "outGradient" | "weight" | "bias", KernelView>>,
) {
  const result = {
    mean: [] as number[],
    variance: [] as number[],
    out: [] as number[],
    inputGradient: [] as number[],
    weightGradient: [] as number[],
    biasGradient: [] as number[],
    runningMean: [] as number[],
    runningVariance: [] as number[],
  };
  for (let c = 0; c < channels; c++) {
    const column = (values: KernelView): number[] =>
      Array.from({ length: rows }, (_, r) => values[r * channels + c] as number);
    const average = (values: number[]): number => values.reduce((a, b) => a + b, 0) / rows;
    const x = column(stored.input);
    const dy = column(stored.outGradient);
    const mean = average(x);
    const variance = average(x.map((v) => (v - mean) ** 2));
    const normal = x.map((v) => (v - mean) / Math.sqrt(variance + eps));
    const [w, b] = [stored.weight[c] as number, stored.bias[c] as number];
    result.mean.push(mean);
    result.variance.push(variance);
    const meanGradient = average(dy);
    result.biasGradient.push(meanGradient * rows);
    result.weightGradient.push(average(dy.map((g, r) => g * (normal[r] as number))) * rows);
    result.runningMean.push(0.25 * (1 - momentum) + mean * momentum);
    result.runningVariance.push(2 * (1 - momentum) + ((variance * rows) / (rows - 1)) * momentum);
    for (const [r, v] of normal.entries()) {
      const y = v * w + b;
      result.out[r * channels + c] = activation === "relu" ? Math.max(y, 0) : y;
      const centred = (dy[r] as number) - meanGradient;
      result.inputGradient[r * channels + c] =
        (w / Math.sqrt(variance + eps)) *
        (centred - (v * (result.weightGradient[c] as number)) / rows);
    }
  }
  return result;
}

const title = ({ rows, channels, storage = "float32" }: Case): string =>
  `[${rows},${channels}] ${storage}`;

const toleranceOf = ({ storage = "float32" }: Case, margin: number) => ({
  relative: margin * 2 ** -23 + (storage === "float32" ? 0 : 2 * unitRoundoff[storage]),
  absolute: margin * 2 ** -23,
});

describe("batch norm on the CPU", () => {
  it("equals a float64 computation", () => {
    const found = cases.flatMap((attributes) => {
      const results = runOnCpu(operandsOf(attributes), launchesOf(attributes));
      return Object.entries(expected(attributes, results)).flatMap(([name, want]) => {
        const { relative, absolute } = toleranceOf(attributes, 8);
        // The mean is stored in float32, and its rounding error enters a sum over all rows.
        const sum = name === "weightGradient" ? attributes.rows * 2 ** -26 : 0;
        return mismatches(results[name as "out"], want, {
          relative,
          absolute: absolute + sum,
        }).map((text) => `${title(attributes)} ${name}${text}`);
      });
    });
    expect(found).toEqual([]);
  });

  it("refuses one value per channel and lengths that do not match", () => {
    const operands = operandsOf({ rows: 1, channels: 4 });
    const run = () => runOnCpu(operands, launchesOf({ rows: 1, channels: 4 }));
    expect(run).toThrow("1 values per channel, but statistics need at least 2");
    expect(() =>
      runOnCpu(operands, (target, bindings) =>
        batchNormStatistics(target, bindings, { rows: 2, channels: 4 }),
      ),
    ).toThrow("input has 4 elements, but the attributes need 8");
  });
});

describe.each(await tiersInLanes())("batch norm on other GPUs, %s tier", (tier) => {
  it("joins shares of chunks in memory where subgroups are not of a workgroup's size", async () => {
    const device = await requestTestDevice({ tier });
    const hardware = {
      ...{ class: "nvidia", workgroupBytes: 16_384, workgroupInvocations: 256 },
      ...{ matrixSubgroupSize: 0, subgroupMatrices: [] },
    };
    const found: string[] = [];
    for (const attributes of cases.slice(0, 4)) {
      const want = runOnCpu(operandsOf(attributes), launchesOf(attributes));
      for (const place of [
        withoutSubgroups,
        <B>(target: LaunchTarget<B>) => withHardware(target, hardware),
      ]) {
        const got = await runOnGpu(device, operandsOf(attributes), (target, bindings) =>
          launchesOf(attributes)(place(target), bindings),
        );
        for (const name of ["variance", "runningMean", "runningVariance", "biasGradient"] as const)
          found.push(
            ...mismatches(got[name], want[name], { relative: 2 ** -20, absolute: 2 ** -20 }).map(
              (text) => `${title(attributes)} ${name}${text}`,
            ),
          );
      }
    }
    expect(found).toEqual([]);
  });
});

describe.each(await testTiers())("batch norm on the GPU, %s tier", (tier) => {
  it("equals the reference", async () => {
    const device = await requestTestDevice({ tier });
    const found: string[] = [];
    for (const attributes of cases) {
      const results = toleranceOf(attributes, 64);
      const statistics = { relative: 2 ** -20, absolute: 2 ** -20 };
      const texts = await deviceMismatches(device, operandsOf(attributes), launchesOf(attributes), {
        mean: statistics,
        variance: statistics,
        runningMean: statistics,
        runningVariance: statistics,
        out: results,
        inputGradient: results,
        weightGradient: { relative: 2 ** -19, absolute: attributes.rows * 2 ** -23 },
        biasGradient: statistics,
      });
      found.push(...texts.map((text) => `${title(attributes)} ${text}`));
    }
    expect(found).toEqual([]);
  });

  it("has statistics of one row, sums of none, and leaves what is not moved", async () => {
    const device = await requestTestDevice({ tier });
    const one = { rows: 1, channels: 5 };
    const { mean, variance, runningMean } = await runOnGpu(
      device,
      operandsOf(one),
      (target, bindings) => batchNormStatistics(target, bindings, one),
    );
    expect([...mean]).toEqual([...operandsOf(one).input.values].map(Math.fround));
    expect([...variance, ...runningMean]).toEqual([0, 0, 0, 0, 0, 0.25, 0.25, 0.25, 0.25, 0.25]);
    const none = { rows: 0, channels: 5 };
    const operands = operandsOf(none);
    const { weightGradient, biasGradient } = await runOnGpu(
      device,
      {
        ...operands,
        weightGradient: { values: new Float32Array(5).fill(7) },
        biasGradient: { values: new Float32Array(5).fill(7) },
      },
      (target, bindings) => batchNormBackward(target, bindings, { ...none, eps }),
    );
    expect([...weightGradient, ...biasGradient]).toEqual(new Array(10).fill(0));
  });

  it.each([Number.NaN, Infinity, -Infinity, 3e38])(
    "keeps a batch with %s out of the running statistics, and only out of that channel's",
    async (special) => {
      const device = await requestTestDevice({ tier });
      const attributes = { rows: 64, channels: 6 };
      const operands = operandsOf(attributes);
      operands.input.values[6 * 20 + 2] = special;
      const { runningMean, runningVariance, out } = await runOnGpu(
        device,
        operands,
        launchesOf(attributes),
      );
      expect(runningMean[2]).toBe(0.25);
      expect(runningVariance[2]).toBe(2);
      const want = runOnCpu(operands, launchesOf(attributes));
      expect(mismatches(runningMean, want.runningMean, { relative: 1e-6, absolute: 0 })).toEqual(
        [],
      );
      const others = (y: KernelView): number[] => Array.from(y).filter((_, i) => i % 6 !== 2);
      expect(mismatches(others(out), others(want.out), toleranceOf(attributes, 64))).toEqual([]);
    },
  );
});
