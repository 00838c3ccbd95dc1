import type { KernelView, LaunchTarget } from "@halfstep/device";
import { requestTestDevice, testTiers } from "@halfstep/device/testing";
import { describe, expect, it } from "vitest";
import {
  deviceMismatches,
  mismatches,
  runOnCpu,
  someGpu,
  withHardware,
  withoutSubgroups,
} from "../../test/harness.js";
import {
  type NormCase as Case,
  eps,
  launchesOf,
  operandsOf,
  outlierMismatches,
  results,
  rows,
  title,
  toleranceOf,
} from "../../test/norm-cases.js";

/** Rows in quads and not, with every tail, one and none; groups in one chunk and in many. Each new program costs half a second. */
const gpuCases: readonly Case[] = [
  rows(70, 136),
  rows(5, 7),
  rows(0, 8),
  { ...rows(66, 516), storage: "bfloat16" },
  { ...rows(3, 1028), storage: "float16" },
  { ...rows(2, 388), isRms: true, affine: "none" },
  { ...rows(130, 12), isRms: true, affine: "weight", storage: "bfloat16" },
  { ...rows(6, 33), affine: "none", storage: "float16" },
  { batch: 3, pixels: 50, groups: 2, width: 4 },
  { batch: 2, pixels: 700, groups: 3, width: 3 },
  { batch: 2, pixels: 900, groups: 2, width: 8 },
];

const alike = <B>(target: LaunchTarget<B>): LaunchTarget<B> => target;

const cases: readonly Case[] = [
  ...gpuCases,
  { ...rows(6, 33), affine: "weight", storage: "float16" },
  { ...rows(3, 5), isRms: true, affine: "none" },
  { ...rows(1, 1), affine: "none" },
  { batch: 1, pixels: 33, groups: 5, width: 1, affine: "bias" },
  { batch: 2, pixels: 640, groups: 1, width: 4, isRms: true },
];

/** The textbook formulas in float64, one group at a time. */
function expected(
  { batch, pixels, groups, width, affine = "both", isRms = false }: Case,
  stored: Readonly<Record<"input" | "outGradient" | "weight" | "bias", KernelView>>,
): Record<(typeof results)[number], Float64Array> {
  const size = batch * pixels * groups * width;
  const channels = groups * width;
  const hasWeight = affine === "both" || affine === "weight";
  const hasBias = affine === "both" || affine === "bias";
  const result = {
    mean: new Float64Array(batch * groups),
    rstd: new Float64Array(batch * groups),
    out: new Float64Array(size),
    inputGradient: new Float64Array(size),
    weightGradient: new Float64Array(channels),
    biasGradient: new Float64Array(channels),
  };
  for (let b = 0; b < batch; b++)
    for (let g = 0; g < groups; g++) {
      const places = Array.from({ length: pixels * width }, (_, i) => {
        const [p, j] = [Math.floor(i / width), i % width];
        return { at: (b * pixels + p) * channels + g * width + j, c: g * width + j };
      });
      const average = (of: (place: { at: number; c: number }) => number): number =>
        places.reduce((sum, place) => sum + of(place), 0) / places.length;
      const x = ({ at }: { at: number }): number => stored.input[at] as number;
      const mean = isRms ? 0 : average(x);
      const rstd = 1 / Math.sqrt(average((place) => (x(place) - mean) ** 2) + eps);
      result.mean[b * groups + g] = mean;
      result.rstd[b * groups + g] = rstd;
      const normalized = (place: { at: number }): number => (x(place) - mean) * rstd;
      const dy = ({ at }: { at: number }): number => stored.outGradient[at] as number;
      const gain = ({ c }: { c: number }): number => (hasWeight ? (stored.weight[c] as number) : 1);
      const h = (place: { at: number; c: number }): number => dy(place) * gain(place);
      const averageH = isRms ? 0 : average(h);
      const averageProduct = average((place) => h(place) * normalized(place));
      for (const place of places) {
        const { at, c } = place;
        const shift = hasBias ? (stored.bias[c] as number) : 0;
        result.out[at] = normalized(place) * gain(place) + shift;
        result.inputGradient[at] =
          rstd * (h(place) - averageH - normalized(place) * averageProduct);
        if (hasWeight)
          result.weightGradient[c] =
            (result.weightGradient[c] as number) + dy(place) * normalized(place);
        if (hasBias) result.biasGradient[c] = (result.biasGradient[c] as number) + dy(place);
      }
    }
  if (isRms) result.mean.fill(0);
  return result;
}

describe("layer, group and RMS norm on the CPU", () => {
  it("equal a float64 computation", () => {
    const found = cases.flatMap((attributes) => {
      const got = runOnCpu(operandsOf(attributes), launchesOf(attributes));
      const want = expected(attributes, got);
      return results.flatMap((name) =>
        mismatches(got[name], want[name], toleranceOf(attributes, 4)).map(
          (text) => `${title(attributes)} ${name}${text}`,
        ),
      );
    });
    expect(found).toEqual([]);
  });

  it("refuse groups without elements", () => {
    expect(() => runOnCpu(operandsOf(rows(2, 0)), launchesOf(rows(2, 0)))).toThrow(
      "a group has no elements",
    );
  });
});

describe.each(await testTiers())("layer, group and RMS norm on the GPU, %s tier", (tier) => {
  const compare = async (
    attributes: Case,
    operands = operandsOf(attributes),
    names: readonly string[] = results,
  ) => {
    const device = await requestTestDevice({ tier });
    const tolerance = toleranceOf(attributes, 32);
    const tolerances = Object.fromEntries(names.map((name) => [name, tolerance]));
    const texts = await deviceMismatches(device, operands, launchesOf(attributes), tolerances);
    return texts.map((text) => `${title(attributes)} ${text}`);
  };

  it("equal the reference", async () => {
    const found: string[] = [];
    for (const attributes of gpuCases) found.push(...(await compare(attributes)));
    expect(found).toEqual([]);
  });

  it("rows are folded as well by teams of every kind", async () => {
    const device = await requestTestDevice({ tier });
    const found: string[] = [];
    for (const shape of [rows(70, 136), rows(66, 516), rows(3, 1028)])
      found.push(...(await outlierMismatches(device, shape, [alike, withoutSubgroups])));
    // Programs for GPUs take this adapter many seconds to compile, above all those without subgroups: a lane has the others.
    const onGpu = <B>(target: LaunchTarget<B>) => withHardware(target, someGpu);
    if (tier !== "packed") found.push(...(await outlierMismatches(device, rows(70, 136), [onGpu])));
    expect(found).toEqual([]);
  });

  it.each([Number.NaN, Infinity])("a group with %s is NaN, and others are not", async (special) => {
    const found: string[] = [];
    for (const attributes of [gpuCases[0], gpuCases[1], gpuCases[6]] as Case[]) {
      const operands = operandsOf(attributes);
      operands.input.values[1] = special;
      found.push(...(await compare(attributes, operands, ["out", "inputGradient"])));
    }
    expect(found).toEqual([]);
  });
});
