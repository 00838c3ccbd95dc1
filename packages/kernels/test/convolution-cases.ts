import type { Binding, DType, Launch, LaunchTarget } from "@halfstep/device";
import { FLAG_WORDS } from "@halfstep/grad-scaler";
import {
  type Conv2dAttributes,
  conv2d,
  conv2dInputGradient,
  conv2dOutputSize,
  conv2dWeightGradient,
} from "../src/conv2d.js";
import { elementwiseKernel } from "../src/elementwise.js";
import { takesEpilogue, withEpilogue } from "../src/epilogue.js";
import { biasReluAndResidual } from "./bias-relu-residual.js";
import { checking } from "./checking.js";
import { type Launches, testValues } from "./harness.js";

// Convolutions that fill blocks, in workgroup memory or of hardware matrices.

export const directions = ["forward", "input", "weight"] as const;
export type Direction = (typeof directions)[number];

export interface ConvolutionCase {
  readonly name: string;
  readonly attributes: Conv2dAttributes;
  /** Directions whose blocks would be mostly empty, or whose taps need divisions: they are computed by rows. */
  readonly byRows?: readonly Direction[];
  /** Adds a bias and a residual to the result, with relu in between. */
  readonly hasEpilogue?: boolean;
}

const window = (
  [batch, height, width]: readonly [number, number, number],
  [inChannels, outChannels]: readonly [number, number],
  [kernelHeight, kernelWidth]: readonly [number, number],
  more: Partial<Conv2dAttributes> = {},
): Conv2dAttributes => ({
  ...{ batch, height, width, inChannels, outChannels, kernelHeight, kernelWidth },
  ...{ stride: [1, 1], padding: [0, 0], dilation: [1, 1] },
  ...more,
});

export const convolutionCases: readonly ConvolutionCase[] = [
  {
    name: "strides, edges and unequal padding",
    attributes: window([2, 13, 14], [32, 36], [3, 2], { stride: [2, 2], padding: [2, 0] }),
  },
  {
    name: "dilation",
    attributes: window([2, 11, 10], [32, 36], [2, 3], { dilation: [3, 2], padding: [1, 2] }),
  },
  {
    name: "strides and dilation",
    attributes: window([2, 16, 13], [32, 32], [3, 3], { stride: [2, 1], dilation: [1, 2] }),
    byRows: ["input"],
  },
  {
    name: "odd channels",
    attributes: window([2, 8, 9], [33, 35], [3, 2], { padding: [1, 1] }),
  },
  {
    name: "odd channels with strides",
    attributes: window([3, 9, 9], [34, 33], [3, 3], { padding: [1, 1], stride: [2, 2] }),
    byRows: ["input"],
  },
  {
    name: "groups",
    attributes: window([1, 9, 8], [64, 80], [3, 3], { padding: [1, 1], groups: 2 }),
  },
  {
    name: "groups of odd channels",
    attributes: window([1, 9, 8], [66, 70], [3, 3], { padding: [1, 1], groups: 2 }),
  },
  {
    name: "groups with strides",
    attributes: window([2, 12, 12], [64, 64], [3, 3], {
      ...{ padding: [1, 1], stride: [2, 2], groups: 2 },
    }),
  },
  {
    name: "1×1 with strides",
    attributes: window([2, 12, 11], [64, 32], [1, 1], { stride: [2, 2] }),
  },
  {
    name: "few input channels in large windows",
    attributes: window([1, 18, 18], [3, 64], [7, 7], { padding: [3, 3], stride: [2, 2] }),
    byRows: ["input"],
  },
  {
    name: "several taps a block",
    attributes: window([1, 9, 9], [4, 32], [5, 5], { padding: [2, 2] }),
    byRows: ["input"],
  },
  {
    name: "several taps a block in the gradient",
    attributes: window([1, 9, 9], [32, 4], [5, 5], { padding: [2, 2] }),
    byRows: ["forward", "weight"],
  },
  {
    name: "large blocks",
    attributes: window([1, 112, 112], [4, 96], [3, 3], { padding: [1, 1] }),
    byRows: ["input"],
  },
  {
    name: "more pixels than a part of the weight's gradient",
    attributes: window([2, 40, 41], [32, 32], [1, 1]),
  },
  {
    name: "3×3 with padding and an epilogue",
    attributes: window([2, 9, 7], [36, 40], [3, 3], { padding: [1, 1] }),
    hasEpilogue: true,
  },
];

/** The sizes of the two operands and the result, and the result's columns. */
function sizesOf(a: Conv2dAttributes, direction: Direction) {
  const [outHeight, outWidth] = conv2dOutputSize(a);
  const input = a.batch * a.height * a.width * a.inChannels;
  const output = a.batch * outHeight * outWidth * a.outChannels;
  const weight = (a.kernelHeight * a.kernelWidth * a.inChannels * a.outChannels) / (a.groups ?? 1);
  return {
    forward: [input, weight, output, a.outChannels] as const,
    input: [output, weight, input, a.inChannels] as const,
    weight: [input, output, weight, a.outChannels] as const,
  }[direction];
}

export type ConvolutionOperands = {
  readonly left: Filled;
  readonly right: Filled;
  readonly bias: Filled;
  readonly residual: Filled;
  /** The result before an epilogue. */
  readonly product: Empty;
  readonly result: Empty;
  /** The result, stored a second time. */
  readonly twin: Empty;
  /** Whether a number of the result is not finite. */
  readonly foundInf: Empty;
};

interface Filled {
  readonly values: Float32Array;
  readonly dtype: DType;
}

interface Empty {
  readonly values: number;
  readonly dtype: DType;
}

/** @param last the last number of the left operand. Loads from outside of images end here, and what they load must not be multiplied. */
export function convolutionOperands(
  { attributes }: ConvolutionCase,
  direction: Direction,
  { dtype = "float16", last = Number.POSITIVE_INFINITY }: { dtype?: DType; last?: number } = {},
): ConvolutionOperands {
  const [left, right, result, columns] = sizesOf(attributes, direction);
  const gathered = testValues(left, 1);
  gathered[left - 1] = last;
  return {
    left: { values: gathered, dtype },
    right: { values: testValues(right, 2), dtype },
    bias: { values: testValues(columns, 3), dtype },
    residual: { values: testValues(result, 4), dtype },
    product: { values: result, dtype: "float32" },
    result: { values: result, dtype: "float32" },
    twin: { values: result, dtype: "float16" },
    foundInf: { values: FLAG_WORDS, dtype: "uint32" },
  };
}

/** The same launches, of which the last also stores `twin` and sets `foundInf`. */
export const checkedLaunches =
  (tested: ConvolutionCase, direction: Direction): Launches<ConvolutionOperands> =>
  (target, operands) => {
    const { result: out, foundInf, twin } = operands;
    convolutionLaunches(tested, direction)(checking(target, { out, foundInf, twin }), operands);
  };

/** The launches of a direction into `result`; where the case has an epilogue, it is woven into the last. */
export const convolutionLaunches =
  (
    { attributes, hasEpilogue = false }: ConvolutionCase,
    direction: Direction,
  ): Launches<ConvolutionOperands> =>
  <B>(
    target: LaunchTarget<B>,
    operands: Readonly<Record<keyof ConvolutionOperands, Binding<B>>>,
  ): void => {
    const { left, right, bias, residual, product, result } = operands;
    const launches: Launch<B>[] = [];
    const recorder: LaunchTarget<B> = {
      allocate: (bytes) => target.allocate(bytes),
      launch: (launch) => launches.push(launch),
    };
    const out = hasEpilogue ? product : result;
    if (direction === "forward") conv2d(recorder, { input: left, weight: right, out }, attributes);
    else if (direction === "input")
      conv2dInputGradient(
        recorder,
        { outGradient: left, weight: right, inputGradient: out },
        attributes,
      );
    else
      conv2dWeightGradient(
        recorder,
        { input: left, outGradient: right, weightGradient: out },
        attributes,
      );
    if (hasEpilogue) {
      const last = launches.pop() as Launch<B>;
      if (!takesEpilogue(last.kernel)) throw new TypeError(`${last.kernel.name} takes no epilogue`);
      launches.push(
        withEpilogue(
          { ...last, kernel: last.kernel },
          {
            kernel: elementwiseKernel(biasReluAndResidual),
            bindings: [product, bias, residual, result],
            scalars: { count: result.length, one: 1, x1_size0: bias.length },
          },
          { results: [0] },
        ),
      );
    }
    for (const launch of launches) target.launch(launch);
  };
