import * as kinds from "../arguments/kinds.js";
import { castOperand } from "../dispatch/cast.js";
import { type Composite, composite } from "../dispatch/composite.js";
import { ShapeError } from "../errors.js";
import type { Tensor } from "../tensor/tensor.js";
import { conv2d, inputGradient, pair } from "./conv2d.js";
import { add } from "./elementwise.js";
import { pad } from "./windows.js";

/** Options of {@link conv1d}. */
export interface Conv1dOptions {
  /** Default 1. */
  readonly stride?: number;
  /** Zeros at each end. Default 0. */
  readonly padding?: number;
  /** Default 1. */
  readonly dilation?: number;
  /** Groups of neighbouring channels, each convolved alone. Default 1. */
  readonly groups?: number;
}

/** Options of {@link convTranspose1d}. */
export interface ConvTranspose1dOptions extends Conv1dOptions {
  /** Added to the length of the result, at its end, and less than the stride or the dilation. Default 0. */
  readonly outputPadding?: number;
}

type Pair = number | readonly [number, number];

/** Options of {@link convTranspose2d}; a pair is height and width. */
export interface ConvTranspose2dOptions {
  /** Default 1. */
  readonly stride?: Pair;
  /** Padding of the convolution that this transposes, which is cut off the result. Default 0. */
  readonly padding?: Pair;
  /** Added to the size of the result, at its end, and less than the stride or the dilation. Default 0. */
  readonly outputPadding?: Pair;
  /** Default 1. */
  readonly dilation?: Pair;
  /** Groups of neighbouring channels, each convolved alone. Default 1. */
  readonly groups?: number;
}

type Convolution<Options> = Composite<
  (input: Tensor, weight: Tensor, bias?: Tensor, options?: Options) => Tensor
>;

const parametersOf = (options: kinds.ParameterKinds): kinds.ParameterKinds => ({
  input: kinds.tensor,
  weight: kinds.tensor,
  bias: kinds.optional(kinds.tensor),
  options: kinds.optionals(options),
});

const lineOptions = {
  stride: kinds.number,
  padding: kinds.number,
  dilation: kinds.number,
  groups: kinds.number,
};

const plusBias = (y: Tensor, bias: Tensor | undefined): Tensor =>
  bias ? add(y, castOperand(bias, y.dtype)) : y;

/** The transpose of {@link conv2d}: the gradient of a convolution with this weight by its input. */
function transposed(
  name: string,
  input: Tensor,
  weight: Tensor,
  options: ConvTranspose2dOptions,
): Tensor {
  if (input.rank !== 4 || weight.rank !== 4)
    throw new ShapeError(
      `${name} needs an input [batch, height, width, in] and a weight [height, width, out / groups, in], not [${input.shape}] and [${weight.shape}]`,
    );
  const { groups = 1 } = options;
  const [batch, height, width, channels] = input.shape as [number, number, number, number];
  const [kernelHeight, kernelWidth, groupChannels, inChannels] = weight.shape as [
    number,
    number,
    number,
    number,
  ];
  if (channels !== inChannels)
    throw new ShapeError(
      `${name}: the input has ${channels} channels, the weight takes ${inChannels}`,
    );
  if (!Number.isInteger(groups) || groups < 1 || channels % groups !== 0)
    throw new ShapeError(
      `${name}: ${channels} input channels cannot be divided into ${groups} groups`,
    );
  const stride = pair(options.stride ?? 1);
  const padding = pair(options.padding ?? 0);
  const dilation = pair(options.dilation ?? 1);
  const extra = pair(options.outputPadding ?? 0);
  // Sequences are images of one line, of which the caller knows nothing.
  const shown = (sizes: readonly [number, number]): string =>
    name === "convTranspose1d" ? `${sizes[1]}` : `[${sizes}]`;
  const along = (d: 0 | 1, size: number, kernel: number): number => {
    if (
      !(Number.isInteger(extra[d]) && extra[d] >= 0 && extra[d] < Math.max(stride[d], dilation[d]))
    )
      throw new RangeError(
        `${name}: outputPadding ${shown(extra)} must be whole, at least 0, and less than the stride ${shown(stride)} or the dilation ${shown(dilation)}`,
      );
    const length =
      (size - 1) * stride[d] - 2 * padding[d] + dilation[d] * (kernel - 1) + extra[d] + 1;
    if (length >= 1) return length;
    throw new ShapeError(
      `${name}: padding ${shown(padding)} leaves nothing of the result of ${shown([height, width])} by a window ${shown([kernelHeight, kernelWidth])}`,
    );
  };
  const size = [along(0, height, kernelHeight), along(1, width, kernelWidth)] as const;
  // Where outputPadding is a stride or more, the convolution that this transposes makes more places than the input has: zeros.
  const behind = ([0, 1] as const).map((d) => [0, Math.floor(extra[d] / stride[d])] as const);
  const isPadded = behind.some(([, count]) => count > 0);
  const padded = isPadded ? pad(input, [[0, 0], ...behind, [0, 0]]) : input;
  return inputGradient.apply([padded, weight], {
    batch,
    height: size[0],
    width: size[1],
    inChannels: groupChannels * groups,
    outChannels: channels,
    kernelHeight,
    kernelWidth,
    stride,
    padding,
    dilation,
    groups,
  });
}

/**
 * Transposed convolution of an input [batch, height, width, in] with a weight [kernelHeight, kernelWidth, out / groups, in], plus a
 * bias [out], as torch.nn.functional.conv_transpose2d with channels last. The weight is laid out as that of the convolution from
 * `out` to `in` channels which this transposes.
 */
export const convTranspose2d: Convolution<ConvTranspose2dOptions> = composite(
  {
    name: "convTranspose2d",
    castPolicy: "lowerPrecision",
    parameters: parametersOf({
      stride: kinds.sizes,
      padding: kinds.sizes,
      dilation: kinds.sizes,
      outputPadding: kinds.sizes,
      groups: kinds.number,
    }),
  },
  (input: Tensor, weight: Tensor, bias?: Tensor, options: ConvTranspose2dOptions = {}): Tensor =>
    plusBias(transposed("convTranspose2d", input, weight, options), bias),
);

/** Treats sequences as images of one line, for the convolution of images. */
function asImages(
  name: string,
  input: Tensor,
  weight: Tensor,
): readonly [input: Tensor, weight: Tensor] {
  if (input.rank !== 3 || weight.rank !== 3)
    throw new ShapeError(
      `${name} needs an input [batch, length, channels] and a weight [length, …, …], not [${input.shape}] and [${weight.shape}]`,
    );
  const [batch, length, channels] = input.shape as [number, number, number];
  return [input.reshape([batch, 1, length, channels]), weight.reshape([1, ...weight.shape])];
}

const asSequences = (images: Tensor): Tensor => {
  const [batch, , length, channels] = images.shape as [number, number, number, number];
  return images.reshape([batch, length, channels]);
};

/** Options of a sequence as those of an image of one line. */
const onLine = ({ stride = 1, padding = 0, dilation = 1, groups = 1 }: Conv1dOptions) =>
  ({ stride: [1, stride], padding: [0, padding], dilation: [1, dilation], groups }) as const;

/**
 * Convolution of sequences [batch, length, in] with a weight [kernelLength, in / groups, out], plus a bias [out], as
 * torch.nn.functional.conv1d with channels last.
 */
export const conv1d: Convolution<Conv1dOptions> = composite(
  { name: "conv1d", castPolicy: "lowerPrecision", parameters: parametersOf(lineOptions) },
  (input: Tensor, weight: Tensor, bias?: Tensor, options: Conv1dOptions = {}): Tensor => {
    const [images, windows] = asImages("conv1d", input, weight);
    return asSequences(conv2d(images, windows, bias, onLine(options)));
  },
);

/**
 * Transposed convolution of sequences [batch, length, in] with a weight [kernelLength, out / groups, in], plus a bias [out], as
 * torch.nn.functional.conv_transpose1d with channels last.
 */
export const convTranspose1d: Convolution<ConvTranspose1dOptions> = composite(
  {
    name: "convTranspose1d",
    castPolicy: "lowerPrecision",
    parameters: parametersOf({ ...lineOptions, outputPadding: kinds.number }),
  },
  (
    input: Tensor,
    weight: Tensor,
    bias?: Tensor,
    { outputPadding = 0, ...options }: ConvTranspose1dOptions = {},
  ): Tensor => {
    const [images, windows] = asImages("convTranspose1d", input, weight);
    const line = { ...onLine(options), outputPadding: [0, outputPadding] as const };
    return plusBias(asSequences(transposed("convTranspose1d", images, windows, line)), bias);
  },
);
