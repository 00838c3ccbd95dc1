import type { Binding, Kernel, KernelView, Launch } from "@halfstep/device";
import { byRowWalk, type RowWalk, rowWalk } from "../wgsl/quad-units.js";
import { type PoolAttributes, type PoolScalars, poolScalars } from "./shape.js";
import {
  cells,
  coveredCells,
  coveringWindows,
  definePool,
  eachWindow,
  movedOf,
  type PoolTypes,
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
  return launch(forwardKernels, [input, out], scalars, attributes);
}

/**
 * inputGradient of {@link avgPool2d}: each element sums the gradients of the windows that cover it, divided by the windows' sizes.
 */
export function avgPool2dBackward<B>(
  operands: { readonly outGradient: Binding<B>; readonly inputGradient: Binding<B> },
  attributes: PoolAttributes,
): Launch<B> {
  const { outGradient, inputGradient } = operands;
  const scalars = poolScalars("avgPool2dBackward", { inputGradient }, { outGradient }, attributes);
  return launch(backwardKernels, [outGradient, inputGradient], scalars, attributes);
}

/** Whether all windows have one size, or each one counts the elements by which it divides. */
type Sizes = "equal" | "counted";

/** Whether windows are so small that their elements are added one by one. */
type Terms = "few" | "many";

/** Terms that are added one by one. Sums of more have parts of so many. */
const fewTerms = 256;

function launch<B>(
  kernels: Readonly<Record<Terms, Readonly<Record<Sizes, Readonly<Record<RowWalk, Kernel>>>>>>,
  bindings: readonly Binding<B>[],
  scalars: Readonly<Record<string, number>>,
  attributes: PoolAttributes,
): Launch<B> {
  const { window, padding, ceilMode = false, countIncludePad = true } = attributes;
  const { equal, counted: ofCounted } = kernels[window[0] * window[1] > fewTerms ? "many" : "few"];
  const areEqual = !ceilMode && (countIncludePad || (padding[0] === 0 && padding[1] === 0));
  const walk = rowWalk(attributes.channels);
  if (areEqual) return { kernel: equal[walk], bindings, scalars };
  const [countedHeight, countedWidth] = countIncludePad ? padding : [0, 0];
  const counted = { ...scalars, countedHeight, countedWidth };
  return { kernel: ofCounted[walk], bindings, scalars: counted };
}

/** The rows and columns of padding on each side that count. */
const countedScalars = ["countedHeight", "countedWidth"];

type MakeKernel = (walk: RowWalk, sizes: Sizes, terms: Terms) => Kernel;

const ofTerms = (make: MakeKernel, terms: Terms) => ({
  equal: byRowWalk((walk) => make(walk, "equal", terms)),
  counted: byRowWalk((walk) => make(walk, "counted", terms)),
});

const ofSizes = (make: MakeKernel) => ({
  few: ofTerms(make, "few"),
  many: ofTerms(make, "many"),
});

const variantOf = (walk: RowWalk, sizes: Sizes, terms: Terms) => ({
  walk,
  variant: walk + (sizes === "counted" ? ",counted" : "") + (terms === "many" ? ",many" : ""),
  ...(sizes === "counted" && { scalars: countedScalars }),
});

/** WGSL by which a window at a place divides. */
const divisor = (sizes: Sizes, row: string, column: string): string =>
  sizes === "equal"
    ? "f32(s.windowHeight * s.windowWidth)"
    : `f32(extent(${row}, s.strideHeight, s.paddingHeight, s.windowHeight, s.height, s.countedHeight) * extent(${column}, s.strideWidth, s.paddingWidth, s.windowWidth, s.width, s.countedWidth))`;

/** WGSL `divided(sum, size)`, and `extent` where sizes are counted. */
const divisionFunctions = (sizes: Sizes, types: PoolTypes): string =>
  `
fn divided(sum: ${types.moved}, size: f32) -> ${types.moved} { return ${movedOf(types, ({ of }) => `${of("sum")} / size`)}; }
${sizes === "equal" ? "" : extentFunction}`;

const extentFunction = /* wgsl */ `
// The elements that a window counts along an axis.
fn extent(place: u32, stride: u32, padding: u32, window: u32, size: u32, counted: u32) -> u32 {
  let start = i32(place * stride) - i32(padding);
  return u32(min(start + i32(window), i32(size + counted)) - max(start, -i32(counted)));
}
`;

/** A loop over a range of places: the name of a place, and that of the range. */
type Places = readonly [place: string, range: string];

/** WGSL that declares `sum`, of a term for each place of these rows and columns. */
const sumOverPlaces = (
  terms: Terms,
  { moved }: PoolTypes,
  [row, rows]: Places,
  [column, columns]: Places,
  term: string,
): string =>
  terms === "few"
    ? `
  var sum = ${moved}();
  for (var ${row} = ${rows}.x; ${row} < ${rows}.y; ${row}++) {
    for (var ${column} = ${columns}.x; ${column} < ${columns}.y; ${column}++) { sum += ${term}; }
  }
`
    : `
  var whole = ${moved}();
  var part = ${moved}();
  var terms = 0u;
  for (var ${row} = ${rows}.x; ${row} < ${rows}.y; ${row}++) {
    var first = ${columns}.x;
    while (first < ${columns}.y) {
      let end = min(first + ${fewTerms}u, ${columns}.y);
      for (var ${column} = first; ${column} < end; ${column}++) { part += ${term}; }
      terms += end - first;
      if (terms >= ${fewTerms}u) {
        whole += part;
        part = ${moved}();
        terms = 0u;
      }
      first = end;
    }
  }
  let sum = whole + part;
`;

const forwardKernels = ofSizes((walk, sizes, terms) =>
  definePool({
    name: "avgPool2d",
    ...variantOf(walk, sizes, terms),
    reads: ["input"],
    out: "out",
    places: windows,
    code: (types) => `${divisionFunctions(sizes, types)}
fn compute(b: u32, row: u32, column: u32, c: u32) -> ${types.moved} {${coveredCells("row", "column")}  let plane = b * s.height;
${sumOverPlaces(terms, types, ["h", "rows"], ["w", "columns"], `${types.load}_input(((plane + h) * s.width + w) * depth() + c)`)}  return divided(sum, ${divisor(sizes, "row", "column")});
}
`,
    reference([x, y], scalars) {
      const sums = new Float64Array((y as KernelView).length);
      const sizeAt = sizeOfWindows(scalars);
      eachChannel(scalars, (to, from) => {
        sums[to] = (sums[to] as number) + (x?.[from] as number);
      });
      for (let i = 0; i < sums.length; i++) (y as KernelView)[i] = (sums[i] as number) / sizeAt(i);
    },
  }),
);

const backwardKernels = ofSizes((walk, sizes, terms) => {
  const gradient = ({ load }: PoolTypes): string =>
    `${load}_outGradient(((plane + oh) * s.outWidth + ow) * depth() + c)`;
  // Where all windows have one size, the sum is divided once.
  const areEqual = sizes === "equal";
  const term = (types: PoolTypes): string =>
    areEqual ? gradient(types) : `divided(${gradient(types)}, ${divisor(sizes, "oh", "ow")})`;
  return definePool({
    name: "avgPool2dBackward",
    ...variantOf(walk, sizes, terms),
    reads: ["outGradient"],
    out: "inputGradient",
    places: cells,
    code: (types) => `${divisionFunctions(sizes, types)}
fn compute(b: u32, row: u32, column: u32, c: u32) -> ${types.moved} {${coveringWindows}  let plane = b * s.outHeight;
${sumOverPlaces(terms, types, ["oh", "ohs"], ["ow", "ows"], term(types))}  return ${areEqual ? `divided(sum, ${divisor(sizes, "", "")})` : "sum"};
}
`,
    reference([dy, dx], scalars) {
      const sums = new Float64Array((dx as KernelView).length);
      const sizeAt = sizeOfWindows(scalars);
      const [inTerm, inSum] = areEqual ? [() => 1, sizeAt] : [sizeAt, () => 1];
      eachChannel(scalars, (to, from) => {
        sums[from] = (sums[from] as number) + (dy?.[to] as number) / inTerm(to);
      });
      for (let i = 0; i < sums.length; i++) (dx as KernelView)[i] = (sums[i] as number) / inSum(i);
    },
  });
});

/** Calls `visit` with each element of the result and each of the input in its window. */
function eachChannel(scalars: PoolScalars, visit: (to: number, from: number) => void): void {
  eachWindow(scalars, (to, covered) => {
    for (const from of covered) for (let c = 0; c < scalars.channels; c++) visit(to + c, from + c);
  });
}

/** By how much the window of an element of the result divides. */
function sizeOfWindows(
  scalars: PoolScalars & { readonly countedHeight?: number; readonly countedWidth?: number },
): (element: number) => number {
  const { countedHeight, countedWidth, windowHeight, windowWidth } = scalars;
  if (countedHeight === undefined || countedWidth === undefined)
    return () => windowHeight * windowWidth;
  const { channels, outHeight, outWidth, height, width } = scalars;
  const extent = (start: number, window: number, size: number, counted: number): number =>
    Math.min(start + window, size + counted) - Math.max(start, -counted);
  return (element) => {
    const place = Math.floor(element / channels);
    const top =
      (Math.floor(place / outWidth) % outHeight) * scalars.strideHeight - scalars.paddingHeight;
    const left = (place % outWidth) * scalars.strideWidth - scalars.paddingWidth;
    return (
      extent(top, windowHeight, height, countedHeight) *
      extent(left, windowWidth, width, countedWidth)
    );
  };
}
