import type { Binding, Kernel, KernelView, Launch } from "@halfstep/device";
import { type PoolAttributes, type PoolScalars, poolScalars } from "./shape.js";
import {
  byWalk,
  cells,
  coveredCells,
  coveringWindows,
  definePool,
  eachWindow,
  type PoolPlaces,
  type PoolWalk,
  poolTypes,
  poolWalk,
  windows,
} from "./window.js";

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
 * inputGradient of {@link maxPool2d}: the gradient of each window goes to its maximum, the first of ties (of several NaN
 * the last, as in torch). The maxima are found again in the input, so the forward pass stores no indices.
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

const isPairs = ({ window, padding, ceilMode = false }: PoolAttributes): boolean =>
  window[0] === 2 && window[1] === 2 && padding[0] === 0 && padding[1] === 0 && !ceilMode;

const forwardKernel = (variant: string, walk: PoolWalk, compute: string): Kernel =>
  definePool({
    name: "maxPool2d",
    variant,
    walk,
    reads: ["input"],
    out: "out",
    places: windows,
    code: takes(walk) + compute,
    reference: ([x, y], scalars) => setMaxima(x as KernelView, y as KernelView, scalars),
  });

const backwardKernel = (
  variant: string,
  walk: PoolWalk,
  code: string,
  more: { readonly places: PoolPlaces; readonly statement?: string },
): Kernel =>
  definePool({
    name: "maxPool2dBackward",
    variant,
    walk,
    reads: ["input", "outGradient"],
    out: "inputGradient",
    code: takes(walk) + code,
    ...more,
    reference: ([x, dy, dx], scalars) =>
      setWinners(x as KernelView, dy as KernelView, dx as KernelView, scalars),
  });

/**
 * `takes(v, best)`: whether v replaces `best`. It tests the bits for NaN, because WGSL may assume that NaN does not occur
 * in comparisons.
 */
function takes(walk: PoolWalk): string {
  const { value, index, mask } = poolTypes[walk];
  return `
fn is_nan(v: ${value}) -> ${mask} { return (bitcast<${index}>(v) & ${index}(0x7fffffffu)) > ${index}(0x7f800000u); }
fn takes(v: ${value}, best: ${value}) -> ${mask} { return ((v > best) & !is_nan(best)) | is_nan(v); }
`;
}

/** Row h, column w of the image whose first row is `plane`. */
const cellAt = (walk: PoolWalk, h: string, w: string): string =>
  `${poolTypes[walk].load}_input(((plane + ${h}) * s.width + ${w}) * depth() + c)`;

const windowKernels = byWalk((walk) =>
  forwardKernel(
    `window,${walk}`,
    walk,
    `fn compute(b: u32, row: u32, column: u32, c: u32) -> ${poolTypes[walk].value} {${coveredCells("row", "column")}
  let plane = b * s.height;
  var best = ${cellAt(walk, "rows.x", "columns.x")};
  for (var h = rows.x; h < rows.y; h++) {
    for (var w = columns.x; w < columns.y; w++) {
      let v = ${cellAt(walk, "h", "w")};
      best = select(best, v, takes(v, best));
    }
  }
  return best;
}
`,
  ),
);

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

const windowBackwardKernels = byWalk((walk) => {
  const { value, index, load } = poolTypes[walk];
  return backwardKernel(
    `window,${walk}`,
    walk,
    `
fn compute(b: u32, row: u32, column: u32, c: u32) -> ${value} {
  let plane = b * s.height;${coveringWindows}  var gradient = ${value}(0.0);
  for (var oh = ohs.x; oh < ohs.y; oh++) {
    for (var ow = ows.x; ow < ows.y; ow++) {${coveredCells("oh", "ow")}
      var best = ${cellAt(walk, "rows.x", "columns.x")};
      var winner = ${index}(rows.x * s.width + columns.x);
      for (var h = rows.x; h < rows.y; h++) {
        for (var w = columns.x; w < columns.y; w++) {
          let v = ${cellAt(walk, "h", "w")};
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
`,
    { places: cells },
  );
});

/** Squares of four cells, and the partial ones at an odd edge. */
const squares: PoolPlaces = {
  height: "(s.height + 1u) / 2u",
  width: "(s.width + 1u) / 2u",
  size: ({ height, width }) => [Math.ceil(height / 2), Math.ceil(width / 2)],
};

// Windows that do not overlap: an invocation owns their four cells, and those at an odd edge that no window covers.
const pairsBackwardKernel: Kernel = backwardKernel(
  "2x2,quads",
  "quads",
  `
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
`,
  { places: squares, statement: "scatter(b, row, column, c);" },
);

function setMaxima(x: KernelView, y: KernelView, scalars: PoolScalars): void {
  const { channels } = scalars;
  eachWindow(scalars, (to, covered) => {
    for (const from of covered) {
      const isFirst = from === covered[0];
      for (let c = 0; c < channels; c++) {
        const v = x[from + c] as number;
        if (isFirst || v > (y[to + c] as number) || Number.isNaN(v)) y[to + c] = v;
      }
    }
  });
}

function setWinners(x: KernelView, dy: KernelView, dx: KernelView, scalars: PoolScalars): void {
  const { channels } = scalars;
  const best = new Float64Array(channels);
  const winners = new Uint32Array(channels);
  const sums = new Float64Array(dx.length);
  eachWindow(scalars, (to, covered) => {
    for (const from of covered) {
      const isFirst = from === covered[0];
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
  });
  dx.set(sums);
}
