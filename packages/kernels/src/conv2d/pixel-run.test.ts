import type { Binding, HalfDType, Launch, LaunchTarget } from "@halfstep/device";
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
import { windows } from "../../test/windows.js";
import { type Conv2dAttributes, conv2dOutputSize } from "../conv2d.js";
import { elementwiseKernel } from "../elementwise.js";
import { takesEpilogue, withEpilogue } from "../epilogue.js";
import { add, relu } from "../expressions.js";
import { planTiles } from "../matmul/shape.js";
import { weightGradientKernel } from "./kernels.js";
import { launchConvolution, planConvolution } from "./launch.js";
import { pixelRun } from "./pixel-run.js";
import { planRun } from "./plan-patch.js";

type FloatDType = "float32" | HalfDType;

interface Case {
  readonly attributes: Conv2dAttributes;
  readonly storage: readonly [input: FloatDType, gradient: FloatDType, out: FloatDType];
  readonly rounding?: HalfDType;
  /** Parts of k. Default 1. */
  readonly splits?: number;
  /** Of a product that is not divided. */
  readonly hasEpilogue?: boolean;
}

const cases: readonly Case[] = [
  {
    attributes: windows([3, 5, 9], [1, 18]),
    storage: ["float16", "float16", "float32"],
    splits: 4,
  },
  {
    attributes: windows([2, 7, 13], [3, 28]),
    storage: ["bfloat16", "bfloat16", "bfloat16"],
  },
  {
    attributes: windows([5, 6, 4], [48, 18]),
    storage: ["float16", "float16", "float16"],
    hasEpilogue: true,
  },
  {
    attributes: windows([3, 1, 11], [16, 36]),
    storage: ["float32", "float32", "float32"],
    splits: 7,
  },
  {
    attributes: windows([3, 7, 7], [64, 32]),
    storage: ["float32", "bfloat16", "float32"],
    rounding: "bfloat16",
    splits: 2,
  },
];

const operandsOf = ({ attributes: a, storage, rounding }: Case) => {
  const rounded = rounding ? { rounding } : {};
  const pixels = a.batch * a.height * a.width;
  const weight = 9 * a.inChannels * a.outChannels;
  return {
    input: { values: testValues(pixels * a.inChannels, 1), dtype: storage[0], ...rounded },
    outGradient: { values: testValues(pixels * a.outChannels, 2), dtype: storage[1], ...rounded },
    bias: { values: testValues(a.outChannels, 3), dtype: storage[2] },
    product: { values: weight, dtype: storage[2] },
    out: { values: weight, dtype: storage[2] },
  };
};

/** The gradient, or relu(gradient + bias) in one launch, of images so small that tiles would compute them. */
const launchesOf =
  ({
    attributes,
    storage,
    splits = 1,
    hasEpilogue,
  }: Case): Launches<ReturnType<typeof operandsOf>> =>
  <B>(target: LaunchTarget<B>, operands: Record<string, Binding<B>>): void => {
    const { input, outGradient, bias, product, out } = operands;
    if (!input || !outGradient || !bias || !product || !out) return;
    const { inChannels, outChannels, height, width } = attributes;
    const m = 9 * inChannels;
    const plan = { ...planTiles(m, outChannels), splits };
    const patch = pixelRun(inChannels, plan.width);
    const launches: Launch<B>[] = [];
    const recorder: LaunchTarget<B> = {
      allocate: (bytes) => target.allocate(bytes),
      launch: (launch) => launches.push(launch),
    };
    const planned = planConvolution(attributes, {
      plan,
      kernel: weightGradientKernel(plan, inChannels % 4 === 0, patch),
      m,
      n: outChannels,
      groups: 1,
      channels: inChannels,
      target: [height, width],
      source: [height, width],
    });
    launchConvolution(recorder, planned, [input, outGradient], hasEpilogue ? product : out);
    const rounding = storage[2] === "float32" ? {} : { rounding: storage[2] };
    for (const launch of launches)
      if (!hasEpilogue) target.launch(launch);
      else if (takesEpilogue(launch.kernel))
        target.launch(
          withEpilogue(
            { ...launch, kernel: launch.kernel },
            {
              kernel: elementwiseKernel({
                inputs: ["same", "row"],
                steps: [
                  { expression: add, operands: [0, 1], ...rounding },
                  { expression: relu, operands: [2] },
                ],
                outputs: [1],
              }),
              bindings: [product, bias, out],
              scalars: { count: out.length, one: 1, x1_size0: bias.length },
            },
            { results: [0], ...rounding },
          ),
        );
  };

const planned = (a: Conv2dAttributes): string | undefined =>
  planRun(a, planTiles(9 * a.inChannels, a.outChannels), conv2dOutputSize(a))?.name;

const tiers = await testTiers();

describe("runs of pixels", () => {
  it("are planned for few channels and for multiples of sixteen", () => {
    const shapes = [
      windows([128, 28, 28], [1, 16]),
      windows([32, 32, 32], [3, 16]),
      windows([32, 32, 32], [32, 16]),
      windows([128, 14, 14], [16, 32]),
      windows([128, 7, 7], [32, 64]),
    ];
    expect(shapes.map(planned)).toEqual(["run1", "run3", "run16", "run16", "run32"]);
  });

  it("are left to tiles where there is little to add up, and for windows that are not plain", () => {
    const tiled = [
      windows([31, 8, 8], [64, 64]),
      windows([64, 8, 8], [24, 64]),
      windows([64, 8, 8], [32, 67]),
      windows([999, 8, 3], [32, 64]),
      windows([999, 8, 7], [3, 64]),
      windows([64, 8, 8], [64, 64], { groups: 2 }),
      windows([64, 8, 10], [64, 64], { padding: [1, 0] }),
      windows([64, 8, 10], [64, 64], { padding: [2, 1] }),
      windows([64, 16, 16], [64, 64], { stride: [2, 2] }),
      windows([64, 10, 10], [64, 64], { dilation: [2, 2] }),
      windows([64, 8, 8], [64, 64], { kernelWidth: 1 }),
    ];
    expect(tiled.map(planned)).toEqual(tiled.map(() => undefined));
  });

  it.each(tiers)("equal the CPU on the GPU (%s)", async (tier) => {
    const device = await requestTestDevice({ tier });
    const wrong: Record<string, readonly string[]> = {};
    for (const tested of cases) {
      const { out } = await runOnGpu(device, operandsOf(tested), launchesOf(tested));
      const expected = runOnCpu(operandsOf(tested), launchesOf(tested));
      expect(expected.out.some((x) => x !== 0)).toBe(true);
      // Sums of these values are exact in float32, so that only stores round.
      const relative =
        tested.storage[2] === "float32" ? 0 : unitRoundoff[tested.storage[2]] * 1.001;
      const found = mismatches(out, expected.out, { relative, absolute: 0 });
      if (found.length > 0) wrong[`${tested.attributes.inChannels} channels`] = found;
    }
    expect(wrong).toEqual({});
  });
});
