import type { HalfDType } from "@halfstep/device";
import { requestTestDevice, testTiers } from "@halfstep/device/testing";
import { describe, expect, it } from "vitest";
import {
  type Launches,
  mismatches,
  runOnCpu,
  runOnGpu,
  testValues,
  unitRoundoff,
} from "../../test/harness.js";
import { type Conv2dAttributes, conv2d, conv2dOutputSize } from "../conv2d.js";
import { planTiles } from "../matmul/shape.js";
import { planPatch } from "./plan-patch.js";

type FloatDType = "float32" | HalfDType;

interface Case {
  readonly attributes: Conv2dAttributes;
  readonly patch: string;
  readonly storage: readonly [input: FloatDType, weight: FloatDType, out: FloatDType];
  readonly rounding?: HalfDType;
}

const windows = (
  [batch, height, width]: readonly [number, number, number],
  [inChannels, outChannels]: readonly [number, number],
  more: Partial<Conv2dAttributes> = {},
): Conv2dAttributes => ({
  batch,
  height,
  width,
  inChannels,
  outChannels,
  kernelHeight: 3,
  kernelWidth: 3,
  stride: [1, 1],
  padding: [1, 1],
  dilation: [1, 1],
  ...more,
});

const single = ["float32", "float32", "float32"] as const;
const half = ["float16", "float16", "float16"] as const;
const brain = ["bfloat16", "bfloat16", "bfloat16"] as const;

const cases: readonly Case[] = [
  { attributes: windows([64, 8, 8], [3, 28]), patch: "8x8w", storage: single },
  {
    attributes: windows([17, 14, 8], [4, 64], { padding: [2, 1] }),
    patch: "8x8w",
    storage: half,
  },
  { attributes: windows([5, 27, 16], [5, 32]), patch: "16x2w", storage: brain },
  { attributes: windows([1, 56, 56], [3, 60]), patch: "14x4", storage: single },
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

const tiers = await testTiers();

describe("pieces of lines", () => {
  it("are planned where they cover the image", () => {
    expect(cases.map(({ attributes }) => planned(attributes))).toEqual(
      cases.map(({ patch }) => patch),
    );
  });

  it("are left to tiles where images or batches are small, and windows not plain", () => {
    const tiled = [
      windows([63, 8, 8], [3, 32]),
      windows([64, 7, 7], [32, 64]),
      windows([64, 9, 9], [32, 64]),
      windows([64, 14, 14], [32, 64]),
      windows([64, 8, 10], [4, 32], { padding: [1, 0] }),
      windows([8, 56, 56], [32, 32], { stride: [2, 2] }),
      windows([8, 58, 58], [32, 32], { dilation: [2, 2] }),
      windows([8, 56, 56], [64, 64], { groups: 2 }),
      windows([8, 57, 57], [32, 32], { kernelWidth: 2, kernelHeight: 2 }),
    ];
    expect(tiled.map(planned)).toEqual(tiled.map(() => undefined));
  });

  it.each(tiers)("equal the CPU on the GPU (%s)", async (tier) => {
    const device = await requestTestDevice({ tier });
    const wrong: Record<string, readonly string[]> = {};
    for (const tested of cases) {
      const { out } = await runOnGpu(device, operandsOf(tested), launchesOf(tested));
      const expected = runOnCpu(operandsOf(tested), launchesOf(tested));
      // Sums of these values are exact in float32, so that only the store rounds.
      const relative =
        tested.storage[2] === "float32" ? 0 : unitRoundoff[tested.storage[2]] * 1.001;
      const found = mismatches(out, expected.out, { relative, absolute: 0 });
      if (found.length > 0) wrong[`${tested.patch} ${tested.storage}`] = found;
    }
    expect(wrong).toEqual({});
  });
});
