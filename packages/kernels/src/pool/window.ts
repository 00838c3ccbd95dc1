import type { Kernel, KernelView } from "@halfstep/device";
import { defineWovenKernel, linearMain, linearWorkgroups } from "../kernel.js";
import type { RowWalk, UnitQuads } from "../wgsl/quad-units.js";
import { type PoolScalars, poolScalarNames } from "./shape.js";

/** WGSL of a walk: the types of a value, of an index and of a comparison for each of its lanes, and the name of a load. */
export interface PoolTypes {
  readonly value: string;
  readonly index: string;
  readonly mask: string;
  readonly load: string;
  /** The type of what is loaded and stored at a time: a value, or a pair of them. */
  readonly moved: string;
  /** The values in it. */
  readonly halves: readonly PoolHalf[];
}

/** One of two values that are moved together, or a value alone. */
export interface PoolHalf {
  /** A variable that each value has for itself. */
  readonly own: (name: string) => string;
  /** The value in what was loaded. */
  readonly of: (moved: string) => string;
}

const alone: PoolHalf = { own: (name) => name, of: (moved) => moved };

/** The types in a walk that moves so many quads at a time. */
function poolTypes(walk: RowWalk, quads: UnitQuads): PoolTypes {
  if (walk === "gather")
    return {
      ...{ value: "f32", index: "u32", mask: "bool", load: "at" },
      ...{ moved: "f32", halves: [alone] },
    };
  const types = { value: "vec4f", index: "vec4u", mask: "vec4<bool>", load: "load" };
  if (quads === 1) return { ...types, moved: "vec4f", halves: [alone] };
  const halves = [0, 1].map((half) => ({
    own: (name: string) => `${name}_${half}`,
    of: (moved: string) => `${moved}[${half}]`,
  }));
  return { ...types, moved: "mat2x4f", halves };
}

/** WGSL for each value that is moved at a time. */
export const eachHalf = ({ halves }: PoolTypes, code: (half: PoolHalf) => string): string =>
  halves.map(code).join("");

/** What is moved, of a WGSL expression for each of its values. */
export const movedOf = ({ halves, moved }: PoolTypes, value: (half: PoolHalf) => string): string =>
  halves.length === 1 ? halves.map(value).join("") : `${moved}(${halves.map(value).join(", ")})`;

/** The places of an image for which a kernel has results, in WGSL and in JavaScript. */
export interface PoolPlaces {
  readonly height: string;
  readonly width: string;
  size(scalars: PoolScalars): readonly [height: number, width: number];
}

/** A place for each element of the input. */
export const cells: PoolPlaces = {
  height: "s.height",
  width: "s.width",
  size: ({ height, width }) => [height, width],
};

/** A place for each window. */
export const windows: PoolPlaces = {
  height: "s.outHeight",
  width: "s.outWidth",
  size: ({ outHeight, outWidth }) => [outHeight, outWidth],
};

/** The definition of a pooling kernel; {@link definePool} adds the shared parts. */
interface PoolDefinition {
  readonly name: string;
  readonly variant: string;
  /** Through the channels of each place. */
  readonly walk: RowWalk;
  /** Bindings that it reads, and the one that it stores. */
  readonly reads: readonly string[];
  readonly out: string;
  readonly places: PoolPlaces;
  /** Scalars beside those of all pools. */
  readonly scalars?: readonly string[];
  /**
   * WGSL with a function `compute(b, row, column, c)` that returns what is moved to `out` at a place. It may call `depth()`, the number of
   * these at a place, `covered` and `covering`.
   */
  readonly code: (types: PoolTypes) => string;
  /** For kernels of quads with their own stores: the statement that runs at each place, instead of `compute`. */
  readonly statement?: string;
  reference(views: readonly KernelView[], scalars: PoolScalars): void;
}

export function definePool(definition: PoolDefinition): Kernel {
  const { name, variant, walk, reads, out, places, code, statement, reference } = definition;
  const scalarNames = [...poolScalarNames, ...(definition.scalars ?? [])];
  return defineWovenKernel({
    name,
    variant,
    epilogue: "store",
    bindings: [
      ...reads.map((read) => ({ name: read, access: "read" as const })),
      { name: out, access: "write" },
    ],
    scalars: scalarNames.map((scalar) => ({ name: scalar, type: "u32" })),
    streams: () => walk === "pairs",
    body: (_context, _woven, quads = 1) =>
      windowFunctions(walk, quads) +
      code(poolTypes(walk, quads)) +
      (statement ? placeLoop(places, statement) : placeMain(walk, out, places)),
    workgroups(values, _lengths, _context, quads = 1) {
      const scalars = values as PoolScalars;
      const [height, width] = places.size(scalars);
      const { batch, channels } = scalars;
      return linearWorkgroups(
        walk === "gather"
          ? Math.ceil((batch * height * width * channels) / 4)
          : (batch * height * Math.ceil(width / stripLength) * channels) / (4 * quads),
      );
    },
    reference: (views, scalars) => reference(views, scalars as PoolScalars),
  });
}

/** A kernel for each walk by quads. */
export const byQuadWalk = (
  make: (walk: RowWalk) => Kernel,
): Readonly<Record<"pairs" | "quads", Kernel>> => ({
  pairs: make("pairs"),
  quads: make("quads"),
});

const windowFunctions = (walk: RowWalk, quads: UnitQuads): string => `
fn depth() -> u32 { return s.channels${walk === "gather" ? "" : ` / ${4 * quads}u`}; }
// The cells of an axis that a window covers, [from, to).
fn covered(place: u32, stride: u32, padding: u32, window: u32, size: u32) -> vec2u {
  let start = i32(place * stride) - i32(padding);
  return vec2u(u32(max(start, 0)), u32(min(start + i32(window), i32(size))));
}
// The windows that cover a cell of an axis, [from, to).
fn covering(cell: u32, stride: u32, padding: u32, window: u32, places: u32) -> vec2u {
  let shifted = cell + padding;
  let first = select((shifted - window) / stride + 1u, 0u, shifted < window);
  return vec2u(first, min(shifted / stride + 1u, places));
}
`;

/** Declares `rows` and `columns`, the cells that the window at a place covers. */
export const coveredCells = (row: string, column: string): string => `
  let rows = covered(${row}, s.strideHeight, s.paddingHeight, s.windowHeight, s.height);
  let columns = covered(${column}, s.strideWidth, s.paddingWidth, s.windowWidth, s.width);
`;

/** Declares `ohs` and `ows`, the windows that cover the current cell. */
export const coveringWindows: string = `
  let ohs = covering(row, s.strideHeight, s.paddingHeight, s.windowHeight, s.outHeight);
  let ows = covering(column, s.strideWidth, s.paddingWidth, s.windowWidth, s.outWidth);
`;

/** Places along a row for one invocation: computing its start costs as much as a few places. */
const stripLength = 4;

/** An entry point that runs `statement` for each place (b, row, column) and each quad of channels `c`, or pair of them. */
const placeLoop = ({ height, width }: PoolPlaces, statement: string): string => `${linearMain()}
  let height = ${height};
  let width = ${width};
  let strips = (width + ${stripLength - 1}u) / ${stripLength}u;
  if (index >= s.batch * height * strips * depth()) { return; }
  let c = index % depth();
  var rest = index / depth();
  let start = rest % strips * ${stripLength}u;
  rest /= strips;
  let row = rest % height;
  let b = rest / height;
  for (var column = start; column < min(start + ${stripLength}u, width); column++) {
    ${statement}
  }
}
`;

/** An entry point that stores `compute(b, row, column, c)` for each place of `out`. */
function placeMain(walk: RowWalk, out: string, places: PoolPlaces): string {
  const { height, width } = places;
  if (walk !== "gather")
    return placeLoop(
      places,
      `store_${out}(((b * ${height} + row) * ${width} + column) * depth() + c, compute(b, row, column, c));`,
    );
  return `${linearMain()}
  let count = s.batch * ${height} * ${width} * depth();
  if (index * 4u >= count) { return; }
  var v = vec4f(0.0);
  for (var lane = 0u; lane < 4u; lane++) {
    let i = min(index * 4u + lane, count - 1u);
    let place = i / depth();
    let row = place / ${width};
    v[lane] = compute(row / ${height}, row % ${height}, place % ${width}, i % depth());
  }
  store_${out}(index, v);
}
`;
}

/** Calls `visit` with the first channel of each window's result, and of each cell that the window covers: a list for this call only. */
export function eachWindow(
  scalars: PoolScalars,
  visit: (to: number, cells: readonly number[]) => void,
): void {
  const { batch, height, width, channels, outHeight, outWidth } = scalars;
  const { strideHeight, paddingHeight, windowHeight } = scalars;
  const { strideWidth, paddingWidth, windowWidth } = scalars;
  const found: number[] = [];
  for (let b = 0, to = 0; b < batch; b++)
    for (let oh = 0; oh < outHeight; oh++)
      for (let ow = 0; ow < outWidth; ow++, to += channels) {
        const [top, left] = [oh * strideHeight - paddingHeight, ow * strideWidth - paddingWidth];
        const bottom = Math.min(top + windowHeight, height);
        const right = Math.min(left + windowWidth, width);
        let count = 0;
        for (let h = Math.max(top, 0); h < bottom; h++)
          for (let w = Math.max(left, 0); w < right; w++)
            found[count++] = ((b * height + h) * width + w) * channels;
        if (found.length > count) found.length = count;
        visit(to, found);
      }
}
