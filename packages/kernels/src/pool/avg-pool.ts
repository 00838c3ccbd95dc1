import type { Binding, KernelView, Launch } from "@halfstep/device";
import { type PoolAttributes, type PoolScalars, poolScalars } from "./shape.js";
import {
  byWalk,
  cells,
  coveredCells,
  coveringWindows,
  definePool,
  eachWindow,
  poolTypes,
  poolWalk,
  windows,
} from "./window.js";

/**
 * out[batch, outHeight, outWidth, channels] = the mean of each window of input[batch, height, width, channels]. Padding counts
 * as zeros, as in torch with its default `count_include_pad`.
 */
export function avgPool2d<B>(
  operands: { readonly input: Binding<B>; readonly out: Binding<B> },
  attributes: PoolAttributes,
): Launch<B> {
  const { input, out } = operands;
  const scalars = poolScalars("avgPool2d", { input }, { out }, attributes);
  return { kernel: forwardKernels[poolWalk(attributes)], bindings: [input, out], scalars };
}

/**
 * inputGradient of {@link avgPool2d}: each element sums the gradients of the windows that cover it, divided by the window's size.
 */
export function avgPool2dBackward<B>(
  operands: { readonly outGradient: Binding<B>; readonly inputGradient: Binding<B> },
  attributes: PoolAttributes,
): Launch<B> {
  const { outGradient, inputGradient } = operands;
  const scalars = poolScalars("avgPool2dBackward", { inputGradient }, { outGradient }, attributes);
  const kernel = backwardKernels[poolWalk(attributes)];
  return { kernel, bindings: [outGradient, inputGradient], scalars };
}

const forwardKernels = byWalk((walk) => {
  const { value, load } = poolTypes[walk];
  return definePool({
    name: "avgPool2d",
    variant: walk,
    walk,
    reads: ["input"],
    out: "out",
    places: windows,
    code: `
fn compute(b: u32, row: u32, column: u32, c: u32) -> ${value} {${coveredCells("row", "column")}  let plane = b * s.height;
  var sum = ${value}(0.0);
  for (var h = rows.x; h < rows.y; h++) {
    for (var w = columns.x; w < columns.y; w++) {
      sum += ${load}_input(((plane + h) * s.width + w) * depth() + c);
    }
  }
  return sum / f32(s.windowHeight * s.windowWidth);
}
`,
    reference: ([x, y], scalars) =>
      setMeans(y as KernelView, scalars, (sums, to, from) => {
        sums[to] = (sums[to] as number) + (x?.[from] as number);
      }),
  });
});

const backwardKernels = byWalk((walk) => {
  const { value, load } = poolTypes[walk];
  return definePool({
    name: "avgPool2dBackward",
    variant: walk,
    walk,
    reads: ["outGradient"],
    out: "inputGradient",
    places: cells,
    code: `
fn compute(b: u32, row: u32, column: u32, c: u32) -> ${value} {${coveringWindows}  let plane = b * s.outHeight;
  var sum = ${value}(0.0);
  for (var oh = ohs.x; oh < ohs.y; oh++) {
    for (var ow = ows.x; ow < ows.y; ow++) {
      sum += ${load}_outGradient(((plane + oh) * s.outWidth + ow) * depth() + c);
    }
  }
  return sum / f32(s.windowHeight * s.windowWidth);
}
`,
    reference: ([dy, dx], scalars) =>
      setMeans(dx as KernelView, scalars, (sums, to, from) => {
        sums[from] = (sums[from] as number) + (dy?.[to] as number);
      }),
  });
});

/**
 * Sets the sums divided by the window's size; `add` is called with each element of the result and each of the input in its
 * window.
 */
function setMeans(
  means: KernelView,
  scalars: PoolScalars,
  add: (sums: Float64Array, to: number, from: number) => void,
): void {
  const { channels, windowHeight, windowWidth } = scalars;
  const sums = new Float64Array(means.length);
  eachWindow(scalars, (to, covered) => {
    for (const from of covered) for (let c = 0; c < channels; c++) add(sums, to + c, from + c);
  });
  for (let i = 0; i < means.length; i++)
    means[i] = (sums[i] as number) / (windowHeight * windowWidth);
}
