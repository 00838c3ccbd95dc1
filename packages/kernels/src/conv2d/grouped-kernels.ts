import type { Kernel, KernelView } from "@halfstep/device";
import { defineKernel, linearMain, linearWorkgroups } from "../kernel.js";

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

export type GroupedScalars = Readonly<Record<(typeof scalarNames)[number], number>>;

/** `read` loads an element, or in depthwise programs a quad of channels; channels are counted in that unit. */
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

/** A product of grouped convolutions. */
interface Product {
  readonly product: "forward" | "inputGradient" | "weightGradient";
  readonly operands: readonly [a: string, b: string, result: string];
  /** WGSL of the sum for element (or quad) `e` of the result. */
  sum(access: Access): string;
}

const forward: Product = {
  product: "forward",
  operands: ["input", "weight", "out"],
  sum: ({ read, isDepthwise }) => `
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
};

const inputGradient: Product = {
  product: "inputGradient",
  operands: ["outGradient", "weight", "inputGradient"],
  sum: ({ read, isDepthwise }) => `
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
};

const weightGradient: Product = {
  product: "weightGradient",
  operands: ["input", "outGradient", "weightGradient"],
  sum: ({ read, isDepthwise }) => `
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

function makeKernel({ product, operands, sum }: Product, isDepthwise: boolean): Kernel {
  const [a, b, result] = operands;
  const named = { a, b } as Readonly<Record<string, string>>;
  const value = isDepthwise ? "vec4f" : "f32";
  const access: Access = {
    read: (name, index) => `${isDepthwise ? "load" : "at"}_${named[name]}(${index})`,
    isDepthwise,
  };
  const unit = isDepthwise ? " / 4u" : "";
  return defineKernel({
    name: `groupedConv2d.${product}`,
    variant: isDepthwise ? "depthwise" : "",
    epilogue: "store",
    bindings: [
      { name: a, access: "read" },
      { name: b, access: "read" },
      { name: result, access: "write" },
    ],
    scalars: scalarNames.map((name) => ({ name, type: "u32" })),
    body: () => `
fn sum_at(e: u32) -> ${value} {
  let ins = s.in_channels${unit};
  let outs = s.out_channels${unit};
  var sum = ${value}();
${sum(access)}
  return sum;
}
${linearMain()}
  if (index * 4u >= s.count) { return; }
  let e = index * 4u;
  store_${result}(index, ${isDepthwise ? "sum_at(index)" : "vec4f(sum_at(e), sum_at(e + 1u), sum_at(e + 2u), sum_at(e + 3u))"});
}
`,
    workgroups: ({ count }) => linearWorkgroups(Math.ceil((count as number) / 4)),
    reference(views, scalars) {
      const [x, y, to] = views as readonly [KernelView, KernelView, KernelView];
      const s = scalars as unknown as GroupedScalars;
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

/** The kernels of a product. Depthwise ones process four channels together. */
export interface GroupedKernels {
  readonly grouped: Kernel;
  readonly depthwise: Kernel;
}

const kernelsOf = (product: Product): GroupedKernels => ({
  grouped: makeKernel(product, false),
  depthwise: makeKernel(product, true),
});

// Constants of their own, so that bundlers drop those that a program does not use.
export const forwardKernels: GroupedKernels = kernelsOf(forward);
export const inputGradientKernels: GroupedKernels = kernelsOf(inputGradient);
export const weightGradientKernels: GroupedKernels = kernelsOf(weightGradient);

/** Calls `visit` with the places of the input, weight and output elements of every product. */
function forEachProduct(
  s: GroupedScalars,
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
