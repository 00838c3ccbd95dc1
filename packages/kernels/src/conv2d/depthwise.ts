import type { Binding, Kernel, Launch } from "@halfstep/device";
import { defineProduct, type EpilogueCode } from "../epilogue.js";
import { indexingWgsl } from "../indexing.js";
import { defineKernel, linearMain, linearWorkgroups } from "../kernel.js";
import type { GroupedShape } from "./grouped.js";

/**
 * Convolutions of each channel by itself with 3×3 weights: an invocation walks along a line with four channels and keeps the part
 * of the image that lies under the window, so that a step loads no more than the columns that come in sight.
 */
export function takesWindows({ attributes, groups }: GroupedShape): boolean {
  const { inChannels, outChannels, kernelHeight, kernelWidth, stride, dilation } = attributes;
  return (
    inChannels === groups &&
    outChannels === groups &&
    groups % 4 === 0 &&
    kernelHeight === 3 &&
    kernelWidth === 3 &&
    dilation[0] === 1 &&
    dilation[1] === 1 &&
    (stride[1] === 1 || stride[1] === 2)
  );
}

export function depthwiseConv2d<B>(
  operands: { readonly input: Binding<B>; readonly weight: Binding<B>; readonly out: Binding<B> },
  { attributes, outHeight, outWidth }: GroupedShape,
): Launch<B> {
  const { batch, height, width, outChannels, stride, padding } = attributes;
  return {
    kernel: stride[1] === 1 ? kernels.forward : kernels.strided,
    bindings: [operands.input, operands.weight, operands.out],
    scalars: {
      n: outChannels,
      images: batch,
      source_height: height,
      source_width: width,
      target_height: outHeight,
      target_width: outWidth,
      stride_y: stride[0],
      padding_y: padding[0],
      padding_x: padding[1],
    },
  };
}

/** Without strides this is a convolution with the taps in reverse. */
export const takesWindowsBackward = (shape: GroupedShape): boolean =>
  takesWindows(shape) && (shape.attributes.stride[1] === 2 || shape.attributes.stride[0] === 1);

export function depthwiseInputGradient<B>(
  operands: {
    readonly outGradient: Binding<B>;
    readonly weight: Binding<B>;
    readonly inputGradient: Binding<B>;
  },
  { attributes, outHeight, outWidth }: GroupedShape,
): Launch<B> {
  const { batch, height, width, outChannels, stride, padding } = attributes;
  const isUnit = stride[1] === 1;
  // More than two lines of padding are lines of the result that are cut off: numbers wrap around.
  const before = (d: 0 | 1): number => (isUnit ? (2 - padding[d]) >>> 0 : padding[d]);
  return {
    kernel: isUnit ? kernels.reversed : kernels.spread,
    bindings: [operands.outGradient, operands.weight, operands.inputGradient],
    scalars: {
      n: outChannels,
      images: batch,
      source_height: outHeight,
      source_width: outWidth,
      target_height: height,
      target_width: width,
      stride_y: stride[0],
      padding_y: before(0),
      padding_x: before(1),
    },
  };
}

/** Sums of every so manieth line: `parts` is [slices, 3, 3, channels]. */
export function depthwiseWeightGradient<B>(
  operands: {
    readonly input: Binding<B>;
    readonly outGradient: Binding<B>;
    readonly parts: Binding<B>;
  },
  { attributes, outHeight, outWidth }: GroupedShape,
  slices: number,
): Launch<B> {
  const { batch, height, width, outChannels, stride, padding } = attributes;
  return {
    kernel: stride[1] === 1 ? kernels.weight : kernels.stridedWeight,
    bindings: [operands.input, operands.outGradient, operands.parts],
    scalars: {
      n: outChannels,
      slices,
      images: batch,
      source_height: height,
      source_width: width,
      target_height: outHeight,
      target_width: outWidth,
      stride_y: stride[0],
      padding_y: padding[0],
      padding_x: padding[1],
    },
  };
}

/** Pixels of a line that one invocation computes. */
const stripLength = 16;

const scalarNames = [
  "n",
  "images",
  "source_height",
  "source_width",
  "target_height",
  "target_width",
  "stride_y",
  "padding_y",
  "padding_x",
] as const;

type Numbers = Readonly<Record<(typeof scalarNames)[number], number>>;

const three = [0, 1, 2] as const;
const taps = three.flatMap((i) => three.map((j) => [i, j] as const));

/** `value(line, is_inside, column, c)` of a line that begins at pixel `line`: zeros outside of the image. Coordinates before its edge wrap around to numbers past its end. */
const sourceValue = `fn value(line: u32, is_inside: bool, column: u32, c: u32) -> vec4f {
  let inside = is_inside && column < s.source_width;
  let at = (line + column) * (s.n >> 2u) + c;
  return select(vec4f(), load_source(select(0u, at, inside)), inside);
}
`;

/** Declares the lines under the window of line `y` of `image`. */
const declareLines = three
  .map(
    (i) => `  let row${i} = y * s.stride_y + ${i}u - s.padding_y;
  let inside${i} = row${i} < s.source_height;
  let line${i} = (image * s.source_height + row${i}) * s.source_width;
`,
  )
  .join("");

const cell = (i: number, column: string): string => `value(line${i}, inside${i}, ${column}, c)`;

/** Walks x from `first` to `last` with `v00 … v22` as what lies under the window, and runs `statements` at each place. */
function walkLine(stride: 1 | 2, first: string, last: string, statements: string): string {
  const kept = 3 - stride;
  const each = (code: (i: number, j: number) => string): string =>
    taps.map(([i, j]) => code(i, j)).join("");
  return `${each((i, j) =>
    j < kept
      ? `  var v${i}${j} = ${cell(i, `${first} * ${stride}u + ${j}u - s.padding_x`)};\n`
      : "",
  )}  for (var x = ${first}; x < ${last}; x++) {
${each((i, j) =>
  j < kept ? "" : `    let v${i}${j} = ${cell(i, `x * ${stride}u + ${j}u - s.padding_x`)};\n`,
)}${statements}${each((i, j) => (j < kept ? `    v${i}${j} = v${i}${j + stride};\n` : ""))}  }
`;
}

function imageKernel(name: string, stride: 1 | 2, isReversed: boolean): Kernel {
  return defineProduct({
    name,
    variant: `3x3 by ${stride}`,
    unit: 4,
    bindings: [
      { name: "source", access: "read" },
      { name: "weight", access: "read" },
      { name: "out", access: "write" },
    ],
    scalars: scalarNames.map((scalar) => ({ name: scalar, type: "u32" })),
    body: (_, epilogue) => imageProgram(stride, isReversed, epilogue),
    workgroups: (scalars) => {
      const s = scalars as Numbers;
      const strips = Math.ceil(s.target_width / stripLength);
      return linearWorkgroups((s.images * s.target_height * strips * s.n) / 4);
    },
    reference([source, weight, out], scalars) {
      if (!source || !weight || !out) return;
      const s = scalars as Numbers;
      const sums = new Float64Array(out.length);
      eachTap(s, stride, (tap, from, to) => {
        const row = (isReversed ? 8 - tap : tap) * s.n;
        for (let c = 0; c < s.n; c++)
          sums[to + c] =
            (sums[to + c] as number) + (source[from + c] as number) * (weight[row + c] as number);
      });
      out.set(sums);
    },
  });
}

function imageProgram(stride: 1 | 2, isReversed: boolean, epilogue?: EpilogueCode): string {
  const operands = epilogue?.operands ?? [];
  const stored =
    epilogue?.call(
      "sum",
      operands.map(({ name }) => `quad_${name}(at)`),
    ) ?? "sum";
  const weights = taps.map(([i, j]) => {
    const tap = 3 * i + j;
    return `  let w${i}${j} = load_weight(${isReversed ? 8 - tap : tap}u * quads + c);\n`;
  });
  const sum = taps.map(([i, j]) => `    sum = fma(v${i}${j}, w${i}${j}, sum);\n`);
  return `${epilogue?.functions ?? ""}${operands.map(({ name, kind }) => indexingWgsl(kind, name)).join("")}${sourceValue}
${linearMain()}
  let quads = s.n >> 2u;
  let strips = (s.target_width + ${stripLength - 1}u) / ${stripLength}u;
  let c = index % quads;
  let first = index / quads % strips * ${stripLength}u;
  let last = min(first + ${stripLength}u, s.target_width);
  let line = index / quads / strips;
  let y = line % s.target_height;
  let image = line / s.target_height;
  if (image >= s.images) { return; }
${declareLines}${weights.join("")}${walkLine(
  stride,
  "first",
  "last",
  `    var sum = vec4f();
${sum.join("")}    let at = (line * s.target_width + x) * quads + c;
    store_out(at, ${stored});
`,
)}}
`;
}

/** Pairs of columns that one invocation computes. */
const pairsInStrip = 8;

/**
 * The gradient by the input where windows are two columns apart: of two neighbouring columns, one meets the outer taps of two windows,
 * the other the middle tap of one.
 */
const spreadKernel = (): Kernel =>
  defineProduct({
    name: "depthwiseInputGradient",
    variant: "3x3 by 2",
    unit: 4,
    bindings: [
      { name: "source", access: "read" },
      { name: "weight", access: "read" },
      { name: "out", access: "write" },
    ],
    scalars: scalarNames.map((scalar) => ({ name: scalar, type: "u32" })),
    body: (_, epilogue) => spreadProgram(epilogue),
    workgroups: (scalars) => {
      const s = scalars as Numbers;
      const strips = Math.ceil((s.target_width + s.padding_x + 1) / 2 / pairsInStrip);
      return linearWorkgroups((s.images * s.target_height * strips * s.n) / 4);
    },
    reference([source, weight, out], scalars) {
      if (!source || !weight || !out) return;
      const s = scalars as Numbers;
      const sums = new Float64Array(out.length);
      const forward = {
        ...s,
        source_height: s.target_height,
        source_width: s.target_width,
        target_height: s.source_height,
        target_width: s.source_width,
      };
      eachTap(forward, 2, (tap, to, from) => {
        for (let c = 0; c < s.n; c++)
          sums[to + c] =
            (sums[to + c] as number) +
            (source[from + c] as number) * (weight[tap * s.n + c] as number);
      });
      out.set(sums);
    },
  });

function spreadProgram(epilogue?: EpilogueCode): string {
  const operands = epilogue?.operands ?? [];
  const stored =
    epilogue?.call(
      "sum",
      operands.map(({ name }) => `quad_${name}(at)`),
    ) ?? "sum";
  const store = (column: string, sum: string): string => `    if (${column} < s.target_width) {
      let sum = ${sum};
      let at = (line * s.target_width + ${column}) * quads + c;
      store_out(at, ${stored});
    }
`;
  const weights = taps.map(
    ([i, j]) => `  let w${i}${j} = load_weight(${3 * i + j}u * quads + c);
`,
  );
  const lines = three.map(
    (i) => `  let scaled${i} = y + s.padding_y - ${i}u;
  let row${i} = scaled${i} / s.stride_y;
  let inside${i} = scaled${i} % s.stride_y == 0u && row${i} < s.source_height;
  let line${i} = (image * s.source_height + row${i}) * s.source_width;
  var before${i} = ${cell(i, "first - 1u")};
`,
  );
  const outer = three.reduce(
    (sum, i) => `fma(before${i}, w${i}2, fma(here${i}, w${i}0, ${sum}))`,
    "vec4f()",
  );
  const middle = three.reduce((sum, i) => `fma(here${i}, w${i}1, ${sum})`, "vec4f()");
  return `${epilogue?.functions ?? ""}${operands.map(({ name, kind }) => indexingWgsl(kind, name)).join("")}${sourceValue}
${linearMain()}
  let quads = s.n >> 2u;
  let pairs = (s.target_width + s.padding_x + 1u) / 2u;
  let strips = (pairs + ${pairsInStrip - 1}u) / ${pairsInStrip}u;
  let c = index % quads;
  let first = index / quads % strips * ${pairsInStrip}u;
  let line = index / quads / strips;
  let y = line % s.target_height;
  let image = line / s.target_height;
  if (image >= s.images) { return; }
${lines.join("")}${weights.join("")}  for (var pair = first; pair < min(first + ${pairsInStrip}u, pairs); pair++) {
${three
  .map(
    (i) => `    let here${i} = ${cell(i, "pair")};
`,
  )
  .join("")}
    let x = pair * 2u - s.padding_x;
${store("x", outer)}${store("x + 1u", middle)}
${three
  .map(
    (i) => `    before${i} = here${i};
`,
  )
  .join("")}  }
}
`;
}

function weightKernel(stride: 1 | 2): Kernel {
  const add = taps.map(([i, j]) => `    sum${i}${j} = fma(v${i}${j}, g, sum${i}${j});\n`);
  return defineKernel({
    name: "depthwiseWeightGradient",
    variant: `3x3 by ${stride}`,
    bindings: [
      { name: "source", access: "read" },
      { name: "gradient", access: "read" },
      { name: "parts", access: "write" },
    ],
    scalars: [...scalarNames, "slices"].map((scalar) => ({ name: scalar, type: "u32" })),
    body: () => `${sourceValue}
${linearMain()}
  let quads = s.n >> 2u;
  let c = index % quads;
  let slice = index / quads;
  if (slice >= s.slices) { return; }
${taps.map(([i, j]) => `  var sum${i}${j} = vec4f();\n`).join("")}
  for (var line = slice; line < s.images * s.target_height; line += s.slices) {
  let y = line % s.target_height;
  let image = line / s.target_height;
${declareLines}${walkLine(
  stride,
  "0u",
  "s.target_width",
  `    let g = load_gradient((line * s.target_width + x) * quads + c);
${add.join("")}`,
)}  }
${taps.map(([i, j]) => `  store_parts((slice * 9u + ${3 * i + j}u) * quads + c, sum${i}${j});\n`).join("")}}
`,
    workgroups: ({ slices, n }) => linearWorkgroups(((slices as number) * (n as number)) / 4),
    reference([source, gradient, parts], scalars) {
      if (!source || !gradient || !parts) return;
      const s = scalars as Numbers & { readonly slices: number };
      const sums = new Float64Array(parts.length);
      eachTap(s, stride, (tap, from, to) => {
        const line = Math.floor(to / s.n / s.target_width);
        const row = ((line % s.slices) * 9 + tap) * s.n;
        for (let c = 0; c < s.n; c++)
          sums[row + c] =
            (sums[row + c] as number) + (source[from + c] as number) * (gradient[to + c] as number);
      });
      parts.set(sums);
    },
  });
}

/** Calls `visit` with each tap and the first channels of the source and target pixels that meet there. */
function eachTap(
  s: Numbers,
  stride: 1 | 2,
  visit: (tap: number, from: number, to: number) => void,
): void {
  // Scalars are unsigned: a negative padding has wrapped around.
  const [top, left] = [s.padding_y | 0, s.padding_x | 0];
  for (let line = 0; line < s.images * s.target_height; line++)
    for (const [i, j] of taps) {
      const row = (line % s.target_height) * s.stride_y + i - top;
      if (row < 0 || row >= s.source_height) continue;
      const above = Math.floor(line / s.target_height) * s.source_height + row;
      for (let x = 0; x < s.target_width; x++) {
        const column = x * stride + j - left;
        if (column < 0 || column >= s.source_width) continue;
        visit(
          3 * i + j,
          (above * s.source_width + column) * s.n,
          (line * s.target_width + x) * s.n,
        );
      }
    }
}

const kernels = {
  forward: imageKernel("depthwiseConv2d", 1, false),
  strided: imageKernel("depthwiseConv2d", 2, false),
  reversed: imageKernel("depthwiseInputGradient", 1, true),
  spread: spreadKernel(),
  weight: weightKernel(1),
  stridedWeight: weightKernel(2),
};
