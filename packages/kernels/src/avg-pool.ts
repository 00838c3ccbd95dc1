import type { Binding, Kernel, KernelView, Launch } from "@halfstep/device";
import { defineKernel } from "./kernel.js";
import {
  coveredCells,
  type PoolAttributes,
  type PoolScalars,
  type PoolWalk,
  poolHead,
  poolMain,
  poolScalars,
  poolScalarTypes,
  poolTypes,
  poolWalk,
  poolWorkgroups,
} from "./pool.js";

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

/** inputGradient of {@link avgPool2d}: each element collects the gradients of the windows that cover it, over the window's size. */
export function avgPool2dBackward<B>(
  operands: { readonly outGradient: Binding<B>; readonly inputGradient: Binding<B> },
  attributes: PoolAttributes,
): Launch<B> {
  const { outGradient, inputGradient } = operands;
  const scalars = poolScalars("avgPool2dBackward", { inputGradient }, { outGradient }, attributes);
  return {
    kernel: backwardKernels[poolWalk(attributes)],
    bindings: [outGradient, inputGradient],
    scalars,
  };
}

const forwardKernel = (walk: PoolWalk): Kernel => {
  const { value, load } = poolTypes[walk];
  return defineKernel({
    name: "avgPool2d",
    variant: walk,
    bindings: [
      { name: "input", access: "read" },
      { name: "out", access: "write" },
    ],
    scalars: poolScalarTypes,
    body: () => `${poolHead(walk)}
fn compute(b: u32, row: u32, column: u32, c: u32) -> ${value} {
  let rows = covered(row, s.strideHeight, s.paddingHeight, s.windowHeight, s.height);
  let columns = covered(column, s.strideWidth, s.paddingWidth, s.windowWidth, s.width);
  let plane = b * s.height;
  var sum = ${value}(0.0);
  for (var h = rows.x; h < rows.y; h++) {
    for (var w = columns.x; w < columns.y; w++) {
      sum += ${load}_input(((plane + h) * s.width + w) * depth() + c);
    }
  }
  return sum / f32(s.windowHeight * s.windowWidth);
}
${poolMain(walk, "out", "s.outHeight", "s.outWidth")}
`,
    workgroups(scalars) {
      const shape = scalars as PoolScalars;
      return poolWorkgroups(walk, shape, shape.outHeight, shape.outWidth);
    },
    reference([input, out], scalars) {
      const y = out as KernelView;
      const sums = new Float64Array(y.length);
      const { windowHeight, windowWidth } = scalars as PoolScalars;
      forEachCell(scalars as PoolScalars, (from, to) => {
        sums[to] = (sums[to] as number) + (input?.[from] as number);
      });
      for (let i = 0; i < y.length; i++) y[i] = (sums[i] as number) / (windowHeight * windowWidth);
    },
  });
};

const backwardKernel = (walk: PoolWalk): Kernel => {
  const { value, load } = poolTypes[walk];
  return defineKernel({
    name: "avgPool2dBackward",
    variant: walk,
    bindings: [
      { name: "outGradient", access: "read" },
      { name: "inputGradient", access: "write" },
    ],
    scalars: poolScalarTypes,
    body: () => `${poolHead(walk)}
fn compute(b: u32, row: u32, column: u32, c: u32) -> ${value} {
  let ohs = covering(row, s.strideHeight, s.paddingHeight, s.windowHeight, s.outHeight);
  let ows = covering(column, s.strideWidth, s.paddingWidth, s.windowWidth, s.outWidth);
  let plane = b * s.outHeight;
  var sum = ${value}(0.0);
  for (var oh = ohs.x; oh < ohs.y; oh++) {
    for (var ow = ows.x; ow < ows.y; ow++) {
      sum += ${load}_outGradient(((plane + oh) * s.outWidth + ow) * depth() + c);
    }
  }
  return sum / f32(s.windowHeight * s.windowWidth);
}
${poolMain(walk, "inputGradient", "s.height", "s.width")}
`,
    workgroups(scalars) {
      const shape = scalars as PoolScalars;
      return poolWorkgroups(walk, shape, shape.height, shape.width);
    },
    reference([outGradient, inputGradient], scalars) {
      const dx = inputGradient as KernelView;
      const sums = new Float64Array(dx.length);
      const { windowHeight, windowWidth } = scalars as PoolScalars;
      forEachCell(scalars as PoolScalars, (from, to) => {
        sums[from] = (sums[from] as number) + (outGradient?.[to] as number);
      });
      for (let i = 0; i < dx.length; i++)
        dx[i] = (sums[i] as number) / (windowHeight * windowWidth);
    },
  });
};

const forwardKernels: Record<PoolWalk, Kernel> = {
  quads: forwardKernel("quads"),
  gather: forwardKernel("gather"),
};

const backwardKernels: Record<PoolWalk, Kernel> = {
  quads: backwardKernel("quads"),
  gather: backwardKernel("gather"),
};

/** Calls `visit` with each element of the input and each element of the result whose window covers it. */
function forEachCell(scalars: PoolScalars, visit: (from: number, to: number) => void): void {
  const { batch, height, width, channels, outHeight, outWidth } = scalars;
  for (let b = 0, to = 0; b < batch; b++)
    for (let oh = 0; oh < outHeight; oh++)
      for (let ow = 0; ow < outWidth; ow++, to += channels) {
        const [top, bottom] = coveredCells(scalars, "Height", oh);
        const [left, right] = coveredCells(scalars, "Width", ow);
        for (let h = top; h < bottom; h++)
          for (let w = left; w < right; w++) {
            const from = ((b * height + h) * width + w) * channels;
            for (let c = 0; c < channels; c++) visit(from + c, to + c);
          }
      }
}
