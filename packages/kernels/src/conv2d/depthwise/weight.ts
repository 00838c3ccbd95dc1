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

/** The gradient by the weight: an invocation has the nine sums of four channels, over lines with a stride. */
function weightKernel(stride: 1 | 2): Kernel {
  return defineKernel({
    name: "depthwiseWeightGradient",
    variant: `3x3 by ${stride}`,
    bindings: [
      { name: "source", access: "read" },
      { name: "gradient", access: "read" },
      { name: "parts", access: "write" },
    ],
    scalars: [...windowScalars, { name: "slices", type: "u32" }],
    body: () => `${sourceValue}
${linearMain()}
  let quads = s.n >> 2u;
  let c = index % quads;
  let slice = index / quads;
  if (slice >= s.slices) { return; }
${eachTap((i, j) => `  var sum${i}${j} = vec4f();\n`)}
  for (var line = slice; line < s.images * s.target_height; line += s.slices) {
  let y = line % s.target_height;
  let image = line / s.target_height;
${declareLines}${walkLine(
  stride,
  "0u",
  "s.target_width",
  `    let g = load_gradient((line * s.target_width + x) * quads + c);
${eachTap((i, j) => `    sum${i}${j} = fma(v${i}${j}, g, sum${i}${j});\n`)}`,
)}  }
${eachTap((i, j) => `  store_parts((slice * 9u + ${3 * i + j}u) * quads + c, sum${i}${j});\n`)}}
`,
    workgroups: ({ slices, n }) => linearWorkgroups(((slices as number) * (n as number)) / 4),
    reference([source, gradient, parts], scalars) {
      if (!source || !gradient || !parts) return;
      const s = scalars as WindowScalars & { readonly slices: number };
      const sums = new Float64Array(parts.length);
      eachMeeting(s, stride, (tap, from, to) => {
        const line = Math.floor(to / s.n / s.target_width);
        const row = ((line % s.slices) * 9 + tap) * s.n;
        addProducts(sums, row, source, from, gradient, to, s.n);
      });
      parts.set(sums);
    },
  });
}

/** Kernels by the stride. */
export const depthwiseWeight: Readonly<Record<1 | 2, Kernel>> = {
  1: weightKernel(1),
  2: weightKernel(2),
};
