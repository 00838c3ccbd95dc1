import type { Kernel } from "@halfstep/device";
import { defineKernel, linearMain, linearWorkgroups } from "../../kernel.js";
import {
  addProducts,
  cell,
  eachMeeting,
  eachTap,
  sourceValue,
  three,
  type WindowScalars,
  windowScalars,
} from "./window.js";

/** Pairs of columns that one invocation computes. */
const pairsInStrip = 8;

/**
 * The gradient by the input for stride 2: of two neighbouring columns, one is under the outer taps of two windows, the other under the
 * middle tap of one.
 */
export const depthwiseSpread: Kernel = defineKernel({
  name: "depthwiseInputGradient",
  variant: "3x3 by 2",
  epilogue: "store",
  bindings: [
    { name: "source", access: "read" },
    { name: "weight", access: "read" },
    { name: "out", access: "write" },
  ],
  scalars: windowScalars,
  body: spreadProgram,
  workgroups: (scalars) => {
    const s = scalars as WindowScalars;
    const strips = Math.ceil((s.target_width + s.padding_x + 1) / 2 / pairsInStrip);
    return linearWorkgroups((s.images * s.target_height * strips * s.n) / 4);
  },
  reference([source, weight, out], scalars) {
    if (!source || !weight || !out) return;
    const s = scalars as WindowScalars;
    const sums = new Float64Array(out.length);
    const forward = {
      ...s,
      source_height: s.target_height,
      source_width: s.target_width,
      target_height: s.source_height,
      target_width: s.source_width,
    };
    eachMeeting(forward, 2, (tap, to, from) =>
      addProducts(sums, to, source, from, weight, tap * s.n, s.n),
    );
    out.set(sums);
  },
});

function spreadProgram(): string {
  const eachLine = (code: (i: number) => string): string => three.map(code).join("");
  const store = (column: string, sum: string): string => `    if (${column} < s.target_width) {
      store_out((line * s.target_width + ${column}) * quads + c, ${sum});
    }
`;
  const lines = eachLine(
    (i) => `  let scaled${i} = y + s.padding_y - ${i}u;
  let row${i} = scaled${i} / s.stride_y;
  let inside${i} = (scaled${i} % s.stride_y == 0u) & (row${i} < s.source_height);
  let line${i} = (image * s.source_height + row${i}) * s.source_width;
  var before${i} = ${cell(i, "first - 1u")};
`,
  );
  const outer = three.reduce(
    (sum, i) => `fma(before${i}, w${i}2, fma(here${i}, w${i}0, ${sum}))`,
    "vec4f()",
  );
  const middle = three.reduce((sum, i) => `fma(here${i}, w${i}1, ${sum})`, "vec4f()");
  return `${sourceValue}
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
${lines}${eachTap((i, j) => `  let w${i}${j} = load_weight(${3 * i + j}u * quads + c);\n`)}  for (var pair = first; pair < min(first + ${pairsInStrip}u, pairs); pair++) {
${eachLine((i) => `    let here${i} = ${cell(i, "pair")};\n`)}
    let x = pair * 2u - s.padding_x;
${store("x", outer)}${store("x + 1u", middle)}
${eachLine((i) => `    before${i} = here${i};\n`)}  }
}
`;
}
