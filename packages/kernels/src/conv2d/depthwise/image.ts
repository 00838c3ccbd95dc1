import type { Kernel } from "@halfstep/device";
import { defineKernel, linearMain, linearWorkgroups } from "../../kernel.js";
import {
  addProducts,
  declareLines,
  eachMeeting,
  eachTap,
  sourceValue,
  type WindowScalars,
  walkLine,
  windowScalars,
} from "./window.js";

/** Pixels of a line that one invocation computes. */
const stripLength = 16;

/** Each pixel of the target is the sum of the pixels under its window times the weights, whose taps may be reversed. */
function imageKernel(name: string, stride: 1 | 2, isReversed: boolean): Kernel {
  return defineKernel({
    name,
    variant: `3x3 by ${stride}`,
    epilogue: "store",
    bindings: [
      { name: "source", access: "read" },
      { name: "weight", access: "read" },
      { name: "out", access: "write" },
    ],
    scalars: windowScalars,
    body: () => imageProgram(stride, isReversed),
    workgroups: (scalars) => {
      const s = scalars as WindowScalars;
      const strips = Math.ceil(s.target_width / stripLength);
      return linearWorkgroups((s.images * s.target_height * strips * s.n) / 4);
    },
    reference([source, weight, out], scalars) {
      if (!source || !weight || !out) return;
      const s = scalars as WindowScalars;
      const sums = new Float64Array(out.length);
      eachMeeting(s, stride, (tap, from, to) =>
        addProducts(sums, to, source, from, weight, (isReversed ? 8 - tap : tap) * s.n, s.n),
      );
      out.set(sums);
    },
  });
}

function imageProgram(stride: 1 | 2, isReversed: boolean): string {
  const tap = (i: number, j: number): number => (isReversed ? 8 - (3 * i + j) : 3 * i + j);
  return `${sourceValue}
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
${declareLines}${eachTap((i, j) => `  let w${i}${j} = load_weight(${tap(i, j)}u * quads + c);\n`)}${walkLine(
  stride,
  "first",
  "last",
  `    var sum = vec4f();
${eachTap((i, j) => `    sum = fma(v${i}${j}, w${i}${j}, sum);\n`)}    store_out((line * s.target_width + x) * quads + c, sum);
`,
)}}
`;
}

/** Kernels by the stride. */
export const depthwiseImage: Readonly<Record<1 | 2, Kernel>> = {
  1: imageKernel("depthwiseConv2d", 1, false),
  2: imageKernel("depthwiseConv2d", 2, false),
};

/** The gradient by the input, without strides. */
export const depthwiseImageReversed: Kernel = imageKernel("depthwiseInputGradient", 1, true);
