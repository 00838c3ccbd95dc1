import type { Binding, HalfDType, Launch, LaunchTarget } from "@halfstep/device";
import { requestTestDevice, testTiers } from "@halfstep/device/testing";
import { describe, expect, it } from "vitest";
import { type Launches, mismatches, runOnCpu, runOnGpu, testValues } from "../../test/harness.js";
import { type Conv2dAttributes, conv2d, conv2dInputGradient } from "../conv2d.js";
import { type ElementwiseProgram, elementwiseKernel } from "../elementwise.js";
import { takesEpilogue, withEpilogue } from "../epilogue.js";
import { add, relu } from "../expressions.js";

interface Case {
  readonly name: string;
  readonly kernel: string;
  readonly isBackward?: boolean;
  readonly storage: "float32" | HalfDType;
  readonly attributes: Conv2dAttributes;
}

const windows = (
  [inChannels, outChannels, groups]: readonly [number, number, number],
  stride: readonly [number, number] = [1, 1],
): Conv2dAttributes => ({
  batch: 2,
  height: 5,
  width: 7,
  inChannels,
  outChannels,
  groups,
  kernelHeight: 3,
  kernelWidth: 3,
  stride,
  padding: [1, 1],
  dilation: [1, 1],
});

const cases: readonly Case[] = [
  {
    name: "few channels",
    kernel: "conv2d",
    storage: "float16",
    attributes: windows([3, 16, 1]),
  },
  {
    name: "few channels in two blocks",
    kernel: "conv2d",
    storage: "float32",
    attributes: windows([1, 56, 1]),
  },
  {
    name: "squares",
    kernel: "conv2d",
    storage: "float16",
    attributes: { ...windows([9, 16, 1]), height: 7 },
  },
  {
    name: "groups of quads",
    kernel: "assembleSlices",
    storage: "float16",
    attributes: windows([8, 16, 2]),
  },
  {
    name: "groups of six",
    kernel: "assembleSlices",
    storage: "bfloat16",
    attributes: windows([8, 12, 2]),
  },
  {
    name: "gradient with strides",
    kernel: "assembleSlices",
    isBackward: true,
    storage: "float16",
    attributes: windows([12, 8, 1], [2, 3]),
  },
  {
    name: "depthwise",
    kernel: "depthwiseConv2d",
    storage: "float16",
    attributes: windows([8, 8, 8]),
  },
  {
    name: "depthwise gradient",
    kernel: "depthwiseInputGradient",
    isBackward: true,
    storage: "float32",
    attributes: windows([8, 8, 8]),
  },
  {
    name: "depthwise gradient with strides",
    kernel: "depthwiseInputGradient",
    isBackward: true,
    storage: "bfloat16",
    attributes: windows([8, 8, 8], [2, 2]),
  },
  {
    name: "whole lines",
    kernel: "conv2d",
    storage: "bfloat16",
    attributes: { ...windows([5, 28, 1]), batch: 8, height: 16, width: 16 },
  },
  {
    name: "pieces of lines",
    kernel: "conv2d",
    storage: "float16",
    attributes: { ...windows([5, 28, 1]), batch: 4, height: 19, width: 56 },
  },
  {
    name: "small groups",
    kernel: "groupedConv2d.forward",
    storage: "float16",
    attributes: windows([4, 6, 2]),
  },
];

const operandsOf = ({ attributes, isBackward, storage }: Case) => {
  const { batch, height, width, inChannels, outChannels, groups = 1, stride } = attributes;
  const small = batch * Math.ceil(height / stride[0]) * Math.ceil(width / stride[1]) * outChannels;
  const [length, channels] = isBackward
    ? [batch * height * width * inChannels, inChannels]
    : [small, outChannels];
  return {
    left: {
      values: testValues(isBackward ? small : batch * height * width * inChannels, 1),
      dtype: storage,
    },
    weight: { values: testValues((9 * inChannels * outChannels) / groups, 2), dtype: storage },
    bias: { values: testValues(channels, 3), dtype: storage },
    product: { values: length, dtype: storage },
    out: { values: length, dtype: storage },
  } as const;
};

/** relu(result + bias), in which every step rounds as a launch of its own would. */
const biasAndRelu = (storage: Case["storage"]): ElementwiseProgram => ({
  inputs: ["same", "row"],
  steps: [
    { expression: add, operands: [0, 1], ...(storage !== "float32" && { rounding: storage }) },
    { expression: relu, operands: [2] },
  ],
  outputs: [1],
});

/** The convolution and its epilogue, woven into the last launch or in a launch of its own. */
const launchesOf =
  (
    { attributes, isBackward, storage, kernel }: Case,
    isWoven: boolean,
  ): Launches<ReturnType<typeof operandsOf>> =>
  <B>(
    target: LaunchTarget<B>,
    { left, weight, bias, product, out }: Record<string, Binding<B>>,
  ): void => {
    if (!left || !weight || !bias || !product || !out) return;
    const launches: Launch<B>[] = [];
    const recorder = {
      allocate: (bytes: number) => target.allocate(bytes),
      launch: (launch: Launch<B>) => launches.push(launch),
    };
    if (isBackward)
      conv2dInputGradient(
        recorder,
        { outGradient: left, weight, inputGradient: product },
        attributes,
      );
    else conv2d(recorder, { input: left, weight, out: product }, attributes);
    const last = launches.pop() as Launch<B>;
    for (const earlier of launches) target.launch(earlier);
    if (last.kernel.name !== kernel || !takesEpilogue(last.kernel))
      throw new TypeError(`${last.kernel.name} instead of ${kernel}, or it takes no epilogue`);
    const epilogue = {
      kernel: elementwiseKernel(biasAndRelu(storage)),
      bindings: [product, bias, out],
      scalars: { count: out.length, one: 1, x1_size0: bias.length },
    };
    if (last.kernel.epilogue === "body") expect(last.scalars.n).toBe(bias.length);
    if (isWoven)
      target.launch(
        withEpilogue({ ...last, kernel: last.kernel }, epilogue, {
          results: [0],
          ...(storage !== "float32" && { rounding: storage }),
        }),
      );
    else {
      target.launch(last);
      target.launch(epilogue);
    }
  };

const tiers = await testTiers();
const exactly = { relative: 0, absolute: 0 };

describe("a convolution with an epilogue", () => {
  it.each(cases)("leaves the bits of two launches on the CPU: $name", (tested) => {
    const [one, two] = [true, false].map((isWoven) =>
      runOnCpu(operandsOf(tested), launchesOf(tested, isWoven)),
    );
    expect(two?.out.some((x) => x !== 0)).toBe(true);
    expect(mismatches(one?.out ?? [], two?.out ?? [], exactly)).toEqual([]);
  });

  it.each(tiers)("equals the CPU on the GPU (%s)", async (tier) => {
    const device = await requestTestDevice({ tier });
    const wrong: Record<string, readonly string[]> = {};
    for (const tested of cases) {
      const gpu = await runOnGpu(device, operandsOf(tested), launchesOf(tested, true));
      const cpu = runOnCpu(operandsOf(tested), launchesOf(tested, false));
      const found = mismatches(gpu.out, cpu.out, exactly);
      if (found.length > 0) wrong[tested.name] = found;
    }
    expect(wrong).toEqual({});
  });
});
