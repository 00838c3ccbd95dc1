import type { Binding, Kernel, KernelView, Launch } from "@halfstep/device";
import { defineKernel } from "./kernel.js";
import {
  coveredCells,
  type PoolAttributes,
  type PoolScalars,
  type PoolWalk,
  poolHead,
  poolLoop,
  poolMain,
  poolScalars,
  poolScalarTypes,
  poolTypes,
  poolWalk,
  poolWorkgroups,
} from "./pool.js";

/**
 * out[batch, outHeight, outWidth, channels] = the maximum of each window of input[batch, height, width, channels]. Padding
 * never wins; NaN does, as in torch.
 */
export function maxPool2d<B>(
  operands: { readonly input: Binding<B>; readonly out: Binding<B> },
  attributes: PoolAttributes,
): Launch<B> {
  const { input, out } = operands;
  const scalars = poolScalars("maxPool2d", { input }, { out }, attributes);
  const walk = poolWalk(attributes);
  const kernel = walk === "quads" && isPairs(attributes) ? pairsKernel : windowKernels[walk];
  return { kernel, bindings: [input, out], scalars };
}

/**
 * inputGradient of {@link maxPool2d}: each window gives its gradient to the element that won it, the first of equals (of
 * several NaN the last, as in torch). The winners are found anew in the input, so the forward pass stores no indices.
 */
export function maxPool2dBackward<B>(
  operands: {
    readonly input: Binding<B>;
    readonly outGradient: Binding<B>;
    readonly inputGradient: Binding<B>;
  },
  attributes: PoolAttributes,
): Launch<B> {
  const { input, outGradient, inputGradient } = operands;
  const scalars = poolScalars(
    "maxPool2dBackward",
    { input, inputGradient },
    { outGradient },
    attributes,
  );
  const walk = poolWalk(attributes);
  const areDisjointPairs =
    isPairs(attributes) && attributes.stride[0] === 2 && attributes.stride[1] === 2;
  const kernel =
    walk === "quads" && areDisjointPairs ? pairsBackwardKernel : windowBackwardKernels[walk];
  return { kernel, bindings: [input, outGradient, inputGradient], scalars };
}

const isPairs = ({ window, padding }: PoolAttributes): boolean =>
  window[0] === 2 && window[1] === 2 && padding[0] === 0 && padding[1] === 0;

/** `takes(v, best)`: v wins. The bits of a NaN decide, since WGSL may assume that comparisons never meet one. */
const takes = (walk: PoolWalk): string => {
  const { value, index, mask } = poolTypes[walk];
  return `
fn is_nan(v: ${value}) -> ${mask} { return (bitcast<${index}>(v) & ${index}(0x7fffffffu)) > ${index}(0x7f800000u); }
fn takes(v: ${value}, best: ${value}) -> ${mask} { return ((v > best) & !is_nan(best)) | is_nan(v); }
`;
};

const windowRanges = (oh: string, ow: string): string => `
  let rows = covered(${oh}, s.strideHeight, s.paddingHeight, s.windowHeight, s.height);
  let columns = covered(${ow}, s.strideWidth, s.paddingWidth, s.windowWidth, s.width);
`;

const windowKernel = (walk: PoolWalk): Kernel => {
  const { value, load } = poolTypes[walk];
  const cell = (h: string, w: string): string =>
    `${load}_input(((plane + ${h}) * s.width + ${w}) * depth() + c)`;
  return forwardKernel(
    `window,${walk}`,
    walk,
    `fn compute(b: u32, row: u32, column: u32, c: u32) -> ${value} {${windowRanges("row", "column")}
  let plane = b * s.height;
  var best = ${cell("rows.x", "columns.x")};
  for (var h = rows.x; h < rows.y; h++) {
    for (var w = columns.x; w < columns.y; w++) {
      let v = ${cell("h", "w")};
      best = select(best, v, takes(v, best));
    }
  }
  return best;
}
`,
  );
};

const forwardKernel = (variant: string, walk: PoolWalk, compute: string): Kernel =>
  defineKernel({
    name: "maxPool2d",
    variant,
    bindings: [
      { name: "input", access: "read" },
      { name: "out", access: "write" },
    ],
    scalars: poolScalarTypes,
    body: () =>
      `${poolHead(walk)}${takes(walk)}${compute}${poolMain(walk, "out", "s.outHeight", "s.outWidth")}`,
    workgroups(scalars) {
      const shape = scalars as PoolScalars;
      return poolWorkgroups(walk, shape, shape.outHeight, shape.outWidth);
    },
    reference: ([input, out], scalars) =>
      maxPoolReference(input as KernelView, out as KernelView, scalars as PoolScalars),
  });

const windowKernels: Record<PoolWalk, Kernel> = {
  quads: windowKernel("quads"),
  gather: windowKernel("gather"),
};

const pairsKernel: Kernel = forwardKernel(
  "2x2,quads",
  "quads",
  `fn compute(b: u32, row: u32, column: u32, c: u32) -> vec4f {
  let corner = (b * s.height + row * s.strideHeight) * s.width + column * s.strideWidth;
  let first = corner * depth() + c;
  let below = first + s.width * depth();
  let v0 = load_input(first);
  let v1 = load_input(first + depth());
  let v2 = load_input(below);
  let v3 = load_input(below + depth());
  let upper = select(v0, v1, takes(v1, v0));
  let three = select(upper, v2, takes(v2, upper));
  return select(three, v3, takes(v3, three));
}
`,
);

const windowBackwardKernel = (walk: PoolWalk): Kernel => {
  const { value, index, load } = poolTypes[walk];
  const cell = (h: string, w: string): string =>
    `${load}_input(((plane + ${h}) * s.width + ${w}) * depth() + c)`;
  return backwardKernel(
    `window,${walk}`,
    `${poolHead(walk)}${takes(walk)}
fn compute(b: u32, row: u32, column: u32, c: u32) -> ${value} {
  let plane = b * s.height;
  let ohs = covering(row, s.strideHeight, s.paddingHeight, s.windowHeight, s.outHeight);
  let ows = covering(column, s.strideWidth, s.paddingWidth, s.windowWidth, s.outWidth);
  var gradient = ${value}(0.0);
  for (var oh = ohs.x; oh < ohs.y; oh++) {
    for (var ow = ows.x; ow < ows.y; ow++) {${windowRanges("oh", "ow")}
      var best = ${cell("rows.x", "columns.x")};
      var winner = ${index}(rows.x * s.width + columns.x);
      for (var h = rows.x; h < rows.y; h++) {
        for (var w = columns.x; w < columns.y; w++) {
          let v = ${cell("h", "w")};
          let wins = takes(v, best);
          best = select(best, v, wins);
          winner = select(winner, ${index}(h * s.width + w), wins);
        }
      }
      let dy = ${load}_outGradient(((b * s.outHeight + oh) * s.outWidth + ow) * depth() + c);
      gradient += select(${value}(0.0), dy, winner == ${index}(row * s.width + column));
    }
  }
  return gradient;
}
${poolMain(walk, "inputGradient", "s.height", "s.width")}
`,
    (shape) => poolWorkgroups(walk, shape, shape.height, shape.width),
  );
};

function backwardKernel(
  variant: string,
  code: string,
  workgroups: (shape: PoolScalars) => readonly [number, number, number],
): Kernel {
  return defineKernel({
    name: "maxPool2dBackward",
    variant,
    bindings: [
      { name: "input", access: "read" },
      { name: "outGradient", access: "read" },
      { name: "inputGradient", access: "write" },
    ],
    scalars: poolScalarTypes,
    body: () => code,
    workgroups: (scalars) => workgroups(scalars as PoolScalars),
    reference: ([input, outGradient, inputGradient], scalars) =>
      maxPoolBackwardReference(
        input as KernelView,
        outGradient as KernelView,
        inputGradient as KernelView,
        scalars as PoolScalars,
      ),
  });
}

const windowBackwardKernels: Record<PoolWalk, Kernel> = {
  quads: windowBackwardKernel("quads"),
  gather: windowBackwardKernel("gather"),
};

// Windows that do not overlap: an invocation owns their four cells, and those at an odd edge that no window covers.
const pairsBackwardKernel: Kernel = backwardKernel(
  "2x2,quads",
  `${poolHead("quads")}${takes("quads")}
fn scatter(b: u32, oh: u32, ow: u32, c: u32) {
  let first = ((b * s.height + oh * 2u) * s.width + ow * 2u) * depth() + c;
  let below = first + s.width * depth();
  let isWide = ow < s.outWidth;
  let isTall = oh < s.outHeight;
  var g0 = vec4f(0.0);
  var g1 = vec4f(0.0);
  var g2 = vec4f(0.0);
  var g3 = vec4f(0.0);
  if (isWide && isTall) {
    let v0 = load_input(first);
    let v1 = load_input(first + depth());
    let v2 = load_input(below);
    let v3 = load_input(below + depth());
    let dy = load_outGradient(((b * s.outHeight + oh) * s.outWidth + ow) * depth() + c);
    let take1 = takes(v1, v0);
    let upper = select(v0, v1, take1);
    let take2 = takes(v2, upper);
    let three = select(upper, v2, take2);
    let take3 = takes(v3, three);
    g3 = select(g3, dy, take3);
    g2 = select(g2, dy, take2 & !take3);
    g1 = select(g1, dy, take1 & !take2 & !take3);
    g0 = select(dy, g0, take1 | take2 | take3);
  }
  store_inputGradient(first, g0);
  if (isWide) { store_inputGradient(first + depth(), g1); }
  if (isTall) {
    store_inputGradient(below, g2);
    if (isWide) { store_inputGradient(below + depth(), g3); }
  }
}
${poolLoop("(s.height + 1u) / 2u", "(s.width + 1u) / 2u", "scatter(b, row, column, c);")}`,
  (shape) =>
    poolWorkgroups("quads", shape, Math.ceil(shape.height / 2), Math.ceil(shape.width / 2)),
);

function maxPoolReference(x: KernelView, y: KernelView, scalars: PoolScalars): void {
  const { batch, height, width, channels, outHeight, outWidth } = scalars;
  for (let b = 0, to = 0; b < batch; b++)
    for (let oh = 0; oh < outHeight; oh++)
      for (let ow = 0; ow < outWidth; ow++, to += channels) {
        const [top, bottom] = coveredCells(scalars, "Height", oh);
        const [left, right] = coveredCells(scalars, "Width", ow);
        for (let h = top; h < bottom; h++)
          for (let w = left; w < right; w++) {
            const from = ((b * height + h) * width + w) * channels;
            const isFirst = h === top && w === left;
            for (let c = 0; c < channels; c++) {
              const v = x[from + c] as number;
              if (isFirst || v > (y[to + c] as number) || Number.isNaN(v)) y[to + c] = v;
            }
          }
      }
}

function maxPoolBackwardReference(
  x: KernelView,
  dy: KernelView,
  dx: KernelView,
  scalars: PoolScalars,
): void {
  const { batch, height, width, channels, outHeight, outWidth } = scalars;
  const best = new Float64Array(channels);
  const winners = new Uint32Array(channels);
  const sums = new Float64Array(dx.length);
  for (let b = 0, to = 0; b < batch; b++)
    for (let oh = 0; oh < outHeight; oh++)
      for (let ow = 0; ow < outWidth; ow++, to += channels) {
        const [top, bottom] = coveredCells(scalars, "Height", oh);
        const [left, right] = coveredCells(scalars, "Width", ow);
        for (let h = top; h < bottom; h++)
          for (let w = left; w < right; w++) {
            const from = ((b * height + h) * width + w) * channels;
            const isFirst = h === top && w === left;
            for (let c = 0; c < channels; c++) {
              const v = x[from + c] as number;
              if (!isFirst && !(v > (best[c] as number)) && !Number.isNaN(v)) continue;
              best[c] = v;
              winners[c] = from + c;
            }
          }
        for (let c = 0; c < channels; c++) {
          const winner = winners[c] as number;
          sums[winner] = (sums[winner] as number) + (dy[to + c] as number);
        }
      }
  dx.set(sums);
}
