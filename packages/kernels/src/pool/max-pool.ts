import type { Binding, Kernel, KernelView, Launch } from "@halfstep/device";
import { byRowWalk, type RowWalk, rowWalk } from "../wgsl/quad-units.js";
import { type PoolAttributes, type PoolScalars, poolScalars } from "./shape.js";
import {
  byQuadWalk,
  cells,
  coveredCells,
  coveringWindows,
  definePool,
  eachHalf,
  eachWindow,
  movedOf,
  type PoolPlaces,
  type PoolTypes,
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
  const walk = rowWalk(attributes.channels);
  const kernel =
    walk !== "gather" && isTwoByTwo(attributes) ? twoByTwoKernels[walk] : windowKernels[walk];
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
  const walk = rowWalk(attributes.channels);
  const areDisjoint =
    isTwoByTwo(attributes) && attributes.stride[0] === 2 && attributes.stride[1] === 2;
  const kernel =
    walk !== "gather" && areDisjoint ? twoByTwoBackwardKernels[walk] : windowBackwardKernels[walk];
  return { kernel, bindings: [input, outGradient, inputGradient], scalars };
}

/**
 * out[batch, outHeight, outWidth, channels] = the element of `values` at the place of the maximum that {@link maxPool2dBackward} finds in each
 * window of `input`. It is the derivative of that gradient by the gradient that enters it.
 */
export function maxPool2dSelect<B>(
  operands: {
    readonly input: Binding<B>;
    readonly values: Binding<B>;
    readonly out: Binding<B>;
  },
  attributes: PoolAttributes,
): Launch<B> {
  const { input, values, out } = operands;
  const scalars = poolScalars("maxPool2dSelect", { input, values }, { out }, attributes);
  const kernel = selectKernels[rowWalk(attributes.channels)];
  return { kernel, bindings: [input, values, out], scalars };
}

const isTwoByTwo = ({ window, padding, ceilMode = false }: PoolAttributes): boolean =>
  window[0] === 2 && window[1] === 2 && padding[0] === 0 && padding[1] === 0 && !ceilMode;

const forwardKernel = (
  variant: string,
  walk: RowWalk,
  compute: (types: PoolTypes) => string,
): Kernel =>
  definePool({
    name: "maxPool2d",
    variant,
    walk,
    reads: ["input"],
    out: "out",
    places: windows,
    code: (types) => takes(types) + compute(types),
    reference: ([x, y], scalars) => setMaxima(x as KernelView, y as KernelView, scalars),
  });

const backwardKernel = (
  variant: string,
  walk: RowWalk,
  code: (types: PoolTypes) => string,
  more: { readonly places: PoolPlaces; readonly statement?: string },
): Kernel =>
  definePool({
    name: "maxPool2dBackward",
    variant,
    walk,
    reads: ["input", "outGradient"],
    out: "inputGradient",
    code: (types) => takes(types) + code(types),
    ...more,
    reference: ([x, dy, dx], scalars) =>
      setWinners(x as KernelView, dy as KernelView, dx as KernelView, scalars),
  });

/**
 * `takes(v, best)`: whether v replaces `best`. It tests the bits for NaN, because WGSL may assume that NaN does not occur
 * in comparisons.
 */
const takes = ({ value, index, mask }: PoolTypes): string => `
fn is_nan(v: ${value}) -> ${mask} { return (bitcast<${index}>(v) & ${index}(0x7fffffffu)) > ${index}(0x7f800000u); }
fn takes(v: ${value}, best: ${value}) -> ${mask} { return ((v > best) & !is_nan(best)) | is_nan(v); }
`;

/** Row h, column w of the image whose first row is `plane`. */
const cellAt = ({ load }: PoolTypes, h: string, w: string, of = "input"): string =>
  `${load}_${of}(((plane + ${h}) * s.width + ${w}) * depth() + c)`;

/** The value v, where it replaces `best`. */
const larger = (best: string, v: string): string => `select(${best}, ${v}, takes(${v}, ${best}))`;

/** Declares `v0` to `v3`, the cells of a window of 2×2 whose left column begins at `first` and `below`. */
const loadSquare = `  let v0 = load_input(first);
  let v1 = load_input(first + depth());
  let v2 = load_input(below);
  let v3 = load_input(below + depth());
`;

const windowKernels = byRowWalk((walk) =>
  forwardKernel(
    `window,${walk}`,
    walk,
    (types) => `
fn compute(b: u32, row: u32, column: u32, c: u32) -> ${types.moved} {${coveredCells("row", "column")}
  let plane = b * s.height;
  var best = ${cellAt(types, "rows.x", "columns.x")};
  for (var h = rows.x; h < rows.y; h++) {
    for (var w = columns.x; w < columns.y; w++) {
      let v = ${cellAt(types, "h", "w")};
      best = ${movedOf(types, ({ of }) => larger(of("best"), of("v")))};
    }
  }
  return best;
}
`,
  ),
);

const selectKernels = byRowWalk((walk) =>
  definePool({
    name: "maxPool2dSelect",
    variant: walk,
    walk,
    reads: ["input", "values"],
    out: "out",
    places: windows,
    code: (types) => `${takes(types)}
fn compute(b: u32, row: u32, column: u32, c: u32) -> ${types.moved} {${coveredCells("row", "column")}
  let plane = b * s.height;
  var best = ${cellAt(types, "rows.x", "columns.x")};
  var chosen = ${cellAt(types, "rows.x", "columns.x", "values")};
  for (var h = rows.x; h < rows.y; h++) {
    for (var w = columns.x; w < columns.y; w++) {
      let v = ${cellAt(types, "h", "w")};
      let u = ${cellAt(types, "h", "w", "values")};
      chosen = ${movedOf(types, ({ of }) => `select(${of("chosen")}, ${of("u")}, takes(${of("v")}, ${of("best")}))`)};
      best = ${movedOf(types, ({ of }) => larger(of("best"), of("v")))};
    }
  }
  return chosen;
}
`,
    reference([x, values, y], scalars) {
      eachWinner(x as KernelView, scalars, (to, winner) => {
        (y as KernelView)[to] = (values as KernelView)[winner] as number;
      });
    },
  }),
);

const twoByTwoKernels = byQuadWalk((walk) =>
  forwardKernel(
    `2x2,${walk}`,
    walk,
    (types) => `
fn compute(b: u32, row: u32, column: u32, c: u32) -> ${types.moved} {
  let corner = (b * s.height + row * s.strideHeight) * s.width + column * s.strideWidth;
  let first = corner * depth() + c;
  let below = first + s.width * depth();
${loadSquare}  let upper = ${movedOf(types, ({ of }) => larger(of("v0"), of("v1")))};
  let three = ${movedOf(types, ({ of }) => larger(of("upper"), of("v2")))};
  return ${movedOf(types, ({ of }) => larger(of("three"), of("v3")))};
}
`,
  ),
);

const windowBackwardKernels = byRowWalk((walk) =>
  backwardKernel(
    `window,${walk}`,
    walk,
    (types) => `
fn compute(b: u32, row: u32, column: u32, c: u32) -> ${types.moved} {
  let plane = b * s.height;${coveringWindows}${eachHalf(types, ({ own }) => `  var ${own("gradient")} = ${types.value}(0.0);\n`)}  for (var oh = ohs.x; oh < ohs.y; oh++) {
    for (var ow = ows.x; ow < ows.y; ow++) {${coveredCells("oh", "ow")}
      let corner = ${cellAt(types, "rows.x", "columns.x")};
${eachHalf(
  types,
  ({ own, of }) => `      var ${own("best")} = ${of("corner")};
      var ${own("winner")} = ${types.index}(rows.x * s.width + columns.x);
`,
)}      for (var h = rows.x; h < rows.y; h++) {
        for (var w = columns.x; w < columns.y; w++) {
          let v = ${cellAt(types, "h", "w")};
${eachHalf(
  types,
  ({ own, of }) => `          let ${own("wins")} = takes(${of("v")}, ${own("best")});
          ${own("best")} = select(${own("best")}, ${of("v")}, ${own("wins")});
          ${own("winner")} = select(${own("winner")}, ${types.index}(h * s.width + w), ${own("wins")});
`,
)}        }
      }
      let dy = ${types.load}_outGradient(((b * s.outHeight + oh) * s.outWidth + ow) * depth() + c);
${eachHalf(
  types,
  ({ own, of }) =>
    `      ${own("gradient")} += select(${types.value}(0.0), ${of("dy")}, ${own("winner")} == ${types.index}(row * s.width + column));\n`,
)}    }
  }
  return ${movedOf(types, ({ own }) => own("gradient"))};
}
`,
    { places: cells },
  ),
);

/** Squares of four cells, and the partial ones at an odd edge. */
const squares: PoolPlaces = {
  height: "(s.height + 1u) / 2u",
  width: "(s.width + 1u) / 2u",
  size: ({ height, width }) => [Math.ceil(height / 2), Math.ceil(width / 2)],
};

const scatter = (types: PoolTypes): string => `
fn scatter(b: u32, oh: u32, ow: u32, c: u32) {
  let first = ((b * s.height + oh * 2u) * s.width + ow * 2u) * depth() + c;
  let below = first + s.width * depth();
  let isWide = ow < s.outWidth;
  let isTall = oh < s.outHeight;
${[0, 1, 2, 3].map((cell) => `  var g${cell} = ${types.moved}();\n`).join("")}  if (isWide && isTall) {
${loadSquare}    let dy = load_outGradient(((b * s.outHeight + oh) * s.outWidth + ow) * depth() + c);
${eachHalf(
  types,
  ({ of }) => `    {
      let take1 = takes(${of("v1")}, ${of("v0")});
      let upper = select(${of("v0")}, ${of("v1")}, take1);
      let take2 = takes(${of("v2")}, upper);
      let three = select(upper, ${of("v2")}, take2);
      let take3 = takes(${of("v3")}, three);
      let none = vec4f(0.0);
      ${of("g3")} = select(none, ${of("dy")}, take3);
      ${of("g2")} = select(none, ${of("dy")}, take2 & !take3);
      ${of("g1")} = select(none, ${of("dy")}, take1 & !take2 & !take3);
      ${of("g0")} = select(${of("dy")}, none, take1 | take2 | take3);
    }
`,
)}  }
  store_inputGradient(first, g0);
  if (isWide) { store_inputGradient(first + depth(), g1); }
  if (isTall) {
    store_inputGradient(below, g2);
    if (isWide) { store_inputGradient(below + depth(), g3); }
  }
}
`;

// Windows that do not overlap: an invocation owns their four cells, and those at an odd edge that no window covers.
const twoByTwoBackwardKernels = byQuadWalk((walk) =>
  backwardKernel(`2x2,${walk}`, walk, scatter, {
    places: squares,
    statement: "scatter(b, row, column, c);",
  }),
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
  const sums = new Float64Array(dx.length);
  eachWinner(x, scalars, (to, winner) => {
    sums[winner] = (sums[winner] as number) + (dy[to] as number);
  });
  dx.set(sums);
}

/** Calls `visit` with each element of the result and the element of the input that is the maximum of its window. */
function eachWinner(
  x: KernelView,
  scalars: PoolScalars,
  visit: (to: number, winner: number) => void,
): void {
  const { channels } = scalars;
  const best = new Float64Array(channels);
  const winners = new Uint32Array(channels);
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
    for (let c = 0; c < channels; c++) visit(to + c, winners[c] as number);
  });
}
