import type { HalfDType, KernelView } from "@halfstep/device";
import { requestTestDevice, testTiers } from "@halfstep/device/testing";
import { describe, expect, it } from "vitest";
import {
  type Launches,
  mismatches,
  runOnCpu,
  runOnGpu,
  shareOf,
  testValues,
  unitRoundoff,
} from "../../test/harness.js";
import { windows } from "../../test/windows.js";
import { type Conv2dAttributes, conv2d, conv2dInputGradient, conv2dOutputSize } from "../conv2d.js";
import { planTiles } from "../matmul/shape.js";
import { planPatch, planTurnedPatch } from "./plan-patch.js";

type FloatDType = "float32" | HalfDType;

interface Case {
  readonly attributes: Conv2dAttributes;
  readonly patch: string;
  readonly storage: readonly [input: FloatDType, weight: FloatDType, out: FloatDType];
  readonly rounding?: HalfDType;
}

const single = ["float32", "float32", "float32"] as const;
const half = ["float16", "float16", "float16"] as const;
const brain = ["bfloat16", "bfloat16", "bfloat16"] as const;

const cases: readonly Case[] = [
  { attributes: windows([64, 8, 8], [9, 28]), patch: "8x8w", storage: single },
  {
    attributes: windows([17, 14, 8], [12, 64], { padding: [2, 1] }),
    patch: "8x8w",
    storage: half,
  },
  { attributes: windows([5, 27, 16], [9, 32]), patch: "16x2w", storage: brain },
  { attributes: windows([1, 56, 56], [9, 60]), patch: "14x4", storage: single },
  {
    attributes: windows([2, 77, 30], [3, 28], { padding: [2, 0] }),
    patch: "14x4",
    storage: half,
  },
  {
    attributes: windows([3, 25, 58], [1, 32], { padding: [0, 0] }),
    patch: "14x4",
    storage: ["bfloat16", "float32", "float32"],
    rounding: "bfloat16",
  },
  { attributes: windows([64, 7, 7], [9, 28]), patch: "7x7w", storage: half },
  { attributes: windows([13, 21, 7], [12, 52]), patch: "7x7w", storage: single },
  { attributes: windows([15, 27, 14], [32, 28]), patch: "14x2w", storage: brain },
  { attributes: windows([2, 16, 24], [12, 16]), patch: "8x8", storage: half },
  { attributes: windows([3, 14, 7], [16, 12]), patch: "7x7", storage: brain },
  {
    attributes: windows([1, 57, 58], [12, 10], { padding: [0, 0] }),
    patch: "8x8",
    storage: single,
  },
  {
    attributes: windows([2, 8, 8], [12, 16]),
    patch: "8x8",
    storage: ["float16", "float32", "float32"],
    rounding: "bfloat16",
  },
  { attributes: windows([2, 8, 8], [10, 16]), patch: "8x8", storage: half },
  { attributes: windows([2, 12, 11], [8, 24]), patch: "strip8x12", storage: half },
  { attributes: windows([1, 33, 9], [5, 20]), patch: "strip5x20", storage: single },
  { attributes: windows([3, 13, 11], [3, 16]), patch: "strip3x16", storage: single },
  {
    attributes: windows([2, 35, 5], [1, 8], { padding: [0, 1] }),
    patch: "strip1x8",
    storage: half,
  },
  {
    attributes: windows([1, 9, 7], [4, 28], { padding: [2, 2] }),
    patch: "strip4x28",
    storage: brain,
  },
  {
    attributes: windows([5, 6, 3], [2, 24], { padding: [1, 3] }),
    patch: "strip2x24",
    storage: ["bfloat16", "float32", "float32"],
    rounding: "bfloat16",
  },
  // One column of pixels, and four of the result; several pieces, and an odd number of them, with the same weights.
  { attributes: windows([2, 16, 1], [3, 4]), patch: "strip3x4", storage: single },
  { attributes: windows([21, 33, 20], [1, 64]), patch: "strip1x32", storage: half },
];

const outLength = (a: Conv2dAttributes): number => {
  const [height, width] = conv2dOutputSize(a);
  return a.batch * height * width * a.outChannels;
};

const planned = (a: Conv2dAttributes): string | undefined =>
  planPatch(a, planTiles(outLength(a) / a.outChannels, a.outChannels), conv2dOutputSize(a))?.name;

const operandsOf = ({ attributes: a, storage, rounding }: Case) => {
  const rounded = rounding ? { rounding } : {};
  const input = testValues(a.batch * a.height * a.width * a.inChannels, 1);
  return {
    input: { values: input, dtype: storage[0], ...rounded },
    weight: {
      values: testValues(9 * a.inChannels * a.outChannels, 2),
      dtype: storage[1],
      ...rounded,
    },
    out: { values: outLength(a), dtype: storage[2] },
  };
};

const launchesOf =
  ({ attributes }: Case): Launches<ReturnType<typeof operandsOf>> =>
  (target, operands) =>
    conv2d(target, operands, attributes);

/** Gradients by the input, of which `inChannels` are columns: storage is of the output's gradient, the weight and the result. */
const turnedCases: readonly Case[] = [
  { attributes: windows([64, 8, 8], [28, 12]), patch: "8x8w", storage: single },
  { attributes: windows([9, 64, 8], [60, 12]), patch: "8x8w", storage: half },
  { attributes: windows([65, 7, 7], [32, 12]), patch: "7x7w", storage: half },
  { attributes: windows([64, 7, 7], [20, 12]), patch: "7x7w", storage: brain },
  { attributes: windows([1, 56, 56], [60, 12]), patch: "14x4", storage: single },
  {
    attributes: windows([2, 75, 28], [28, 8], { padding: [2, 0] }),
    patch: "14x4",
    storage: half,
  },
  {
    attributes: windows([3, 27, 56], [32, 4], { padding: [0, 2] }),
    patch: "14x4",
    storage: ["bfloat16", "float32", "float32"],
    rounding: "bfloat16",
  },
  { attributes: windows([2, 16, 24], [16, 12]), patch: "8x8", storage: half },
  { attributes: windows([3, 14, 7], [12, 16]), patch: "7x7", storage: brain },
  {
    attributes: windows([1, 55, 56], [10, 12], { padding: [0, 1] }),
    patch: "8x8",
    storage: single,
  },
  {
    attributes: windows([2, 8, 8], [16, 12]),
    patch: "8x8",
    storage: ["float16", "float32", "float32"],
    rounding: "bfloat16",
  },
  { attributes: windows([3, 13, 11], [16, 3]), patch: "strip3x16", storage: single },
  {
    attributes: windows([2, 35, 5], [24, 8], { padding: [0, 1] }),
    patch: "strip8x12",
    storage: half,
  },
  {
    attributes: windows([5, 6, 3], [24, 5], { padding: [1, 0] }),
    patch: "strip5x12",
    storage: ["bfloat16", "float32", "float32"],
    rounding: "bfloat16",
  },
  { attributes: windows([21, 33, 20], [64, 1]), patch: "strip1x32", storage: brain },
];

const plannedTurned = (a: Conv2dAttributes): string | undefined =>
  planTurnedPatch(a, planTiles(a.batch * a.height * a.width, a.inChannels), conv2dOutputSize(a))
    ?.name;

const turnedOperandsOf = ({ attributes: a, storage, rounding }: Case) => {
  const rounded = rounding ? { rounding } : {};
  return {
    outGradient: { values: testValues(outLength(a), 1), dtype: storage[0], ...rounded },
    weight: {
      values: testValues(9 * a.inChannels * a.outChannels, 2),
      dtype: storage[1],
      ...rounded,
    },
    inputGradient: { values: a.batch * a.height * a.width * a.inChannels, dtype: storage[2] },
  };
};

const turnedLaunchesOf =
  ({ attributes }: Case): Launches<ReturnType<typeof turnedOperandsOf>> =>
  (target, operands) =>
    conv2dInputGradient(target, operands, attributes);

/** The CPU result of a case, computed once for all tiers. */
const onCpu = new Map<Case, KernelView>();
function expectedOf(tested: Case, compute: () => KernelView): KernelView {
  const known = onCpu.get(tested) ?? compute();
  onCpu.set(tested, known);
  return known;
}

const tiers = await testTiers();

describe("patches of pixels", () => {
  it("are planned where they cover the image", () => {
    expect([cases, turnedCases].map((all) => all.map(({ patch }) => patch))).toEqual([
      cases.map(({ attributes }) => planned(attributes)),
      turnedCases.map(({ attributes }) => plannedTurned(attributes)),
    ]);
  });

  it("are left to tiles where nothing covers the image, batches are small, or windows not plain", () => {
    const tiled = [
      windows([63, 8, 8], [9, 32]),
      windows([60, 7, 7], [32, 32]),
      windows([64, 9, 9], [32, 64]),
      windows([64, 14, 14], [36, 64]),
      windows([64, 8, 10], [4, 32], { padding: [1, 0] }),
      windows([8, 56, 56], [32, 32], { stride: [2, 2] }),
      windows([8, 58, 58], [32, 32], { dilation: [2, 2] }),
      windows([8, 56, 56], [64, 64], { groups: 2 }),
      windows([8, 57, 57], [32, 32], { kernelWidth: 2, kernelHeight: 2 }),
      windows([2, 9, 9], [3, 44]),
      windows([2, 9, 9], [3, 18]),
      windows([2, 9, 9], [3, 32], { padding: [1, 0] }),
      windows([2, 9, 9], [9, 32]),
      windows([1, 4, 4], [3, 16]),
    ];
    expect(tiled.map(planned)).toEqual(tiled.map(() => undefined));
    const tiledTurned = [
      windows([64, 8, 8], [32, 10]),
      windows([64, 16, 16], [32, 32]),
      windows([64, 14, 14], [32, 32]),
      windows([8, 57, 57], [32, 32], { stride: [2, 2] }),
      windows([8, 56, 56], [32, 32], { dilation: [2, 2], padding: [2, 2] }),
    ];
    expect(tiledTurned.map(plannedTurned)).toEqual(tiledTurned.map(() => undefined));
  });

  it.each(tiers)("equal the CPU on the GPU (%s)", async (tier) => {
    const device = await requestTestDevice({ tier });
    const wrong: Record<string, readonly string[]> = {};
    // Sums of these values are exact in float32, so that only the store rounds.
    const compare = (
      name: string,
      { patch, storage }: Case,
      found: KernelView,
      expected: KernelView,
    ) => {
      const relative = storage[2] === "float32" ? 0 : unitRoundoff[storage[2]] * 1.001;
      const mistakes = mismatches(found, expected, { relative, absolute: 0 });
      if (mistakes.length > 0) wrong[`${name} ${patch} ${storage}`] = mistakes;
    };
    // The tiers differ in how halves are loaded and stored alone: they share the cases.
    for (const tested of shareOf(cases, tier, tiers)) {
      const found = await runOnGpu(device, operandsOf(tested), launchesOf(tested));
      const expected = expectedOf(
        tested,
        () => runOnCpu(operandsOf(tested), launchesOf(tested)).out,
      );
      compare("conv2d", tested, found.out, expected);
    }
    for (const tested of shareOf(turnedCases, tier, tiers)) {
      const found = await runOnGpu(device, turnedOperandsOf(tested), turnedLaunchesOf(tested));
      const expected = expectedOf(
        tested,
        () => runOnCpu(turnedOperandsOf(tested), turnedLaunchesOf(tested)).inputGradient,
      );
      compare("conv2dInputGradient", tested, found.inputGradient, expected);
    }
    expect(wrong).toEqual({});
  });
});
