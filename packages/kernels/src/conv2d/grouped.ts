import type { Binding, Kernel, KernelView, Launch, LaunchTarget } from "@halfstep/device";
import type { Conv2dAttributes } from "../conv2d.js";
import { defineProduct } from "../epilogue.js";
import { indexingWgsl } from "../indexing.js";
import { linearMain, linearWorkgroups } from "../kernel.js";
import { reduce } from "../reduce.js";
import {
  depthwiseConv2d,
  depthwiseInputGradient,
  depthwiseWeightGradient,
  takesWindows,
  takesWindowsBackward,
} from "./depthwise.js";

/** What a grouped convolution needs besides its attributes. */
export interface GroupedShape {
  readonly attributes: Conv2dAttributes;
  readonly groups: number;
  readonly outHeight: number;
  readonly outWidth: number;
}

type Product = "forward" | "inputGradient" | "weightGradient";

/**
 * Convolutions by small groups of channels are summed directly, an element an invocation's lane: each group alone would leave most
 * of a tile empty. Where each channel is a group of its own (depthwise), four channels go together.
 */
export const groupedConv2d = <B>(
  operands: { readonly input: Binding<B>; readonly weight: Binding<B>; readonly out: Binding<B> },
  shape: GroupedShape,
): Launch<B> =>
  takesWindows(shape)
    ? depthwiseConv2d(operands, shape)
    : launchOf("forward", [operands.input, operands.weight, operands.out], shape, { slices: 1 });

export const groupedInputGradient = <B>(
  operands: {
    readonly outGradient: Binding<B>;
    readonly weight: Binding<B>;
    readonly inputGradient: Binding<B>;
  },
  shape: GroupedShape,
): Launch<B> => {
  const { outGradient, weight, inputGradient } = operands;
  if (takesWindowsBackward(shape)) return depthwiseInputGradient(operands, shape);
  return launchOf("inputGradient", [outGradient, weight, inputGradient], shape, { slices: 1 });
};

/** Few elements with long sums: the pixels are summed in slices, and these by a second launch. */
export function groupedWeightGradient<B>(
  target: LaunchTarget<B>,
  operands: {
    readonly input: Binding<B>;
    readonly outGradient: Binding<B>;
    readonly weightGradient: Binding<B>;
  },
  shape: GroupedShape,
): void {
  const { input, outGradient, weightGradient } = operands;
  const size = weightGradient.length;
  const lines = shape.attributes.batch * shape.outHeight;
  const hasWindows = takesWindows(shape);
  const [pieces, enough] = hasWindows
    ? [lines, (4 * enoughInvocations) / shape.groups]
    : [(lines * shape.outWidth) / 64, enoughElements / Math.max(1, size)];
  const slices = Math.max(1, Math.min(Math.ceil(pieces), Math.ceil(enough)));
  const length = slices * size;
  const parts: Binding<B> =
    slices === 1
      ? weightGradient
      : { buffer: target.allocate(length * 4), offset: 0, length, dtype: "float32" };
  target.launch(
    hasWindows
      ? depthwiseWeightGradient({ input, outGradient, parts }, shape, slices)
      : launchOf("weightGradient", [input, outGradient, parts], shape, { slices }),
  );
  if (slices > 1)
    reduce(
      target,
      { input: parts, out: weightGradient },
      { op: "sum", outer: 1, size: slices, inner: size },
    );
}

/** Invocations that walk lines, and elements of partial sums, that keep a device busy. */
const enoughInvocations = 2048;
const enoughElements = 16_384;

function launchOf<B>(
  product: Product,
  bindings: readonly Binding<B>[],
  { attributes, groups, outHeight, outWidth }: GroupedShape,
  { slices }: { readonly slices: number },
): Launch<B> {
  const { inChannels, outChannels, stride, padding, dilation } = attributes;
  const isDepthwise = inChannels === groups && outChannels === groups && groups % 4 === 0;
  return {
    kernel: kernels[product][isDepthwise ? "depthwise" : "grouped"],
    bindings,
    scalars: {
      count: (bindings[2] as Binding<B>).length,
      n: product === "inputGradient" ? inChannels : outChannels,
      slices,
      images: attributes.batch,
      in_height: attributes.height,
      in_width: attributes.width,
      in_channels: inChannels,
      out_height: outHeight,
      out_width: outWidth,
      out_channels: outChannels,
      group_in: inChannels / groups,
      group_out: outChannels / groups,
      kernel_height: attributes.kernelHeight,
      kernel_width: attributes.kernelWidth,
      stride_y: stride[0],
      stride_x: stride[1],
      padding_y: padding[0],
      padding_x: padding[1],
      dilation_y: dilation[0],
      dilation_x: dilation[1],
    },
  };
}

const scalarNames = [
  "count",
  "n",
  "slices",
  "images",
  "in_height",
  "in_width",
  "in_channels",
  "out_height",
  "out_width",
  "out_channels",
  "group_in",
  "group_out",
  "kernel_height",
  "kernel_width",
  "stride_y",
  "stride_x",
  "padding_y",
  "padding_x",
  "dilation_y",
  "dilation_x",
] as const;

type Numbers = Readonly<Record<(typeof scalarNames)[number], number>>;

/** `read` reaches an element, or in depthwise programs a quad of channels; channels are counted in that unit. */
interface Access {
  read(name: string, index: string): string;
  readonly isDepthwise: boolean;
}

// Coordinates before the image's edge wrap around to numbers past its end.
const inputPixel = /* wgsl */ `
      let row = y * s.stride_y + i * s.dilation_y - s.padding_y;
      let column = x * s.stride_x + j * s.dilation_x - s.padding_x;
      if (row >= s.in_height || column >= s.in_width) { continue; }
      let place = ((image * s.in_height + row) * s.in_width + column) * ins`;

const tapLoops = (body: string): string => `
  for (var i = 0u; i < s.kernel_height; i++) {
    for (var j = 0u; j < s.kernel_width; j++) {
      let tap = i * s.kernel_width + j;
${body}    }
  }
`;

/** WGSL of the sum for element (or quad) `e` of each product's result. */
const sums: Record<Product, (access: Access) => string> = {
  forward: ({ read, isDepthwise }) => `
  let o = e % outs;
  let pixel = e / outs;
  let x = pixel % s.out_width;
  let y = pixel / s.out_width % s.out_height;
  let image = pixel / s.out_width / s.out_height;
  let first = ${isDepthwise ? "o" : "o / s.group_out * s.group_in"};
${tapLoops(`${inputPixel} + first;
      for (var c = 0u; c < s.group_in; c++) {
        sum += ${read("a", "place + c")} * ${read("b", "(tap * s.group_in + c) * outs + o")};
      }
`)}`,
  inputGradient: ({ read, isDepthwise }) => `
  let c = e % ins;
  let pixel = e / ins;
  let x = pixel % s.in_width;
  let y = pixel / s.in_width % s.in_height;
  let image = pixel / s.in_width / s.in_height;
  let first = ${isDepthwise ? "c" : "c / s.group_in * s.group_out"};
  let inner = ${isDepthwise ? "0u" : "c % s.group_in"};
  // Where windows are not dilated, taps that meet the pixel are as far apart as windows are.
  let step_y = select(1u, s.stride_y, s.dilation_y == 1u);
  let step_x = select(1u, s.stride_x, s.dilation_x == 1u);
  for (var i = (y + s.padding_y) % step_y; i < s.kernel_height; i += step_y) {
    for (var j = (x + s.padding_x) % step_x; j < s.kernel_width; j += step_x) {
      let tap = i * s.kernel_width + j;
      let scaled_y = y + s.padding_y - i * s.dilation_y;
      let scaled_x = x + s.padding_x - j * s.dilation_x;
      let row = scaled_y / s.stride_y;
      let column = scaled_x / s.stride_x;
      let meets = scaled_y % s.stride_y == 0u && scaled_x % s.stride_x == 0u;
      if (!meets || row >= s.out_height || column >= s.out_width) { continue; }
      let place = ((image * s.out_height + row) * s.out_width + column) * outs + first;
      for (var o = 0u; o < s.group_out; o++) {
        sum += ${read("a", "place + o")} * ${read("b", "(tap * s.group_in + inner) * outs + first + o")};
      }
    }
  }
`,
  weightGradient: ({ read, isDepthwise }) => `
  let size = s.kernel_height * s.kernel_width * s.group_in * outs;
  let slice = e / size;
  let o = e % outs;
  let c = e % size / outs % s.group_in;
  let tap = e % size / outs / s.group_in;
  let i = tap / s.kernel_width;
  let j = tap % s.kernel_width;
  let channel = ${isDepthwise ? "o" : "o / s.group_out * s.group_in + c"};
  let pixels = s.images * s.out_height * s.out_width;
  for (var pixel = slice; pixel < pixels; pixel += s.slices) {
      let x = pixel % s.out_width;
      let y = pixel / s.out_width % s.out_height;
      let image = pixel / s.out_width / s.out_height;
${inputPixel} + channel;
      sum += ${read("a", "place")} * ${read("b", "pixel * outs + o")};
  }
`,
};

const names: Record<Product, readonly [a: string, b: string, result: string]> = {
  forward: ["input", "weight", "out"],
  inputGradient: ["outGradient", "weight", "inputGradient"],
  weightGradient: ["input", "outGradient", "weightGradient"],
};

function makeKernel(product: Product, isDepthwise: boolean): Kernel {
  const [a, b, result] = names[product];
  const named = { a, b } as Readonly<Record<string, string>>;
  const value = isDepthwise ? "vec4f" : "f32";
  const access: Access = {
    read: (name, index) => `${isDepthwise ? "load" : "at"}_${named[name]}(${index})`,
    isDepthwise,
  };
  const unit = isDepthwise ? " / 4u" : "";
  return defineProduct({
    name: `groupedConv2d.${product}`,
    variant: isDepthwise ? "depthwise" : "",
    unit: 4,
    bindings: [
      { name: a, access: "read" },
      { name: b, access: "read" },
      { name: result, access: "write" },
    ],
    scalars: scalarNames.map((name) => ({ name, type: "u32" })),
    body: (
      _,
      epilogue,
    ) => `${epilogue?.functions ?? ""}${(epilogue?.operands ?? []).map(({ name, kind }) => indexingWgsl(kind, name)).join("")}
fn sum_at(e: u32) -> ${value} {
  let ins = s.in_channels${unit};
  let outs = s.out_channels${unit};
  var sum = ${value}();
${sums[product](access)}
  return sum;
}
${linearMain()}
  if (index * 4u >= s.count) { return; }
  let e = index * 4u;
  let sums = ${isDepthwise ? "sum_at(index)" : "vec4f(sum_at(e), sum_at(e + 1u), sum_at(e + 2u), sum_at(e + 3u))"};
  store_${result}(index, ${
    epilogue?.call(
      "sums",
      epilogue.operands.map(({ name }) => `quad_${name}(index)`),
    ) ?? "sums"
  });
}
`,
    workgroups: ({ count }) => linearWorkgroups(Math.ceil((count as number) / 4)),
    reference(views, scalars) {
      const [x, y, to] = views as readonly [KernelView, KernelView, KernelView];
      const s = scalars as unknown as Numbers;
      const totals = new Float64Array(to.length);
      const add = (at: number, value: number): void => {
        totals[at] = (totals[at] as number) + value;
      };
      const size = to.length / s.slices;
      forEachProduct(s, (input, weight, out, pixel) => {
        if (product === "forward") add(out, (x[input] as number) * (y[weight] as number));
        else if (product === "inputGradient")
          add(input, (x[out] as number) * (y[weight] as number));
        else add((pixel % s.slices) * size + weight, (x[input] as number) * (y[out] as number));
      });
      to.set(totals);
    },
  });
}

const variantsOf = (product: Product): Record<"grouped" | "depthwise", Kernel> => ({
  grouped: makeKernel(product, false),
  depthwise: makeKernel(product, true),
});

const kernels: Record<Product, Record<"grouped" | "depthwise", Kernel>> = {
  forward: variantsOf("forward"),
  inputGradient: variantsOf("inputGradient"),
  weightGradient: variantsOf("weightGradient"),
};

/** Calls `visit` with the places of every input, weight and output element that meet in a product. */
function forEachProduct(
  s: Numbers,
  visit: (input: number, weight: number, out: number, pixel: number) => void,
): void {
  const groups = s.in_channels / s.group_in;
  for (let pixel = 0; pixel < s.images * s.out_height * s.out_width; pixel++) {
    const x = pixel % s.out_width;
    const y = Math.floor(pixel / s.out_width) % s.out_height;
    const image = Math.floor(pixel / s.out_width / s.out_height);
    for (let tap = 0; tap < s.kernel_height * s.kernel_width; tap++) {
      const [i, j] = [Math.floor(tap / s.kernel_width), tap % s.kernel_width];
      const row = y * s.stride_y + i * s.dilation_y - s.padding_y;
      const column = x * s.stride_x + j * s.dilation_x - s.padding_x;
      if (row < 0 || row >= s.in_height || column < 0 || column >= s.in_width) continue;
      const from = ((image * s.in_height + row) * s.in_width + column) * s.in_channels;
      for (let g = 0; g < groups; g++)
        for (let c = 0; c < s.group_in; c++)
          for (let o = g * s.group_out; o < (g + 1) * s.group_out; o++)
            visit(
              from + g * s.group_in + c,
              (tap * s.group_in + c) * s.out_channels + o,
              pixel * s.out_channels + o,
              pixel,
            );
    }
  }
}
