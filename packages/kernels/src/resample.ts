import type { Binding, Kernel, KernelView, Launch } from "@halfstep/device";
import { requireOneOf } from "./attributes.js";
import { defineWovenKernel, linearMain, linearWorkgroups } from "./kernel.js";
import { requireLengths } from "./operands.js";
import { type RowWalk, rowWalk, unitOf } from "./wgsl/quad-units.js";

/**
 * How places of the new axis are computed from the old one: the nearest place below, or ("exact") nearest to the middle; linearly
 * between two places, or by the cubic through four (Keys 1981, with torch's −0.75). "Corners" aligns the ends.
 */
export type ResampleMode = (typeof resampleModes)[number];

const resampleModes = [
  "nearest",
  "nearestExact",
  "linear",
  "linearCorners",
  "cubic",
  "cubicCorners",
] as const;

/** An axis to resample: the input is [outer, size, inner], the result [outer, newSize, inner]. */
export interface ResampleAttributes {
  readonly mode: ResampleMode;
  /** The input is a contiguous [outer, size, inner], the result [outer, newSize, inner]. */
  readonly outer: number;
  readonly size: number;
  readonly newSize: number;
  readonly inner: number;
  /**
   * Numerator and denominator of the number of new places for an old one. Default: [newSize, size]. Another one is that of a scale whose
   * product with the size was rounded. Corners are aligned by the sizes alone.
   */
  readonly ratio?: readonly [number, number] | undefined;
}

/**
 * out = the input with its middle axis resampled, as one axis of torch.nn.functional.interpolate.
 *
 * @throws RangeError for an unknown mode, and for lengths that do not fit.
 */
export function resample<B>(
  operands: { readonly input: Binding<B>; readonly out: Binding<B> },
  attributes: ResampleAttributes,
): Launch<B> {
  const { mode, outer, size, newSize, inner } = attributes;
  requireOneOf("resample", "mode", mode, resampleModes);
  requireLengths("resample", operands, {
    input: outer * size * inner,
    out: outer * newSize * inner,
  });
  return {
    kernel: kernelOf(forward, attributes),
    bindings: [operands.input, operands.out],
    scalars: scalarsOf(attributes),
  };
}

/** The transpose of {@link resample}: maps gradients of its result to gradients of its input, in a fixed order. */
export function resampleBackward<B>(
  operands: { readonly outGradient: Binding<B>; readonly inputGradient: Binding<B> },
  attributes: ResampleAttributes,
): Launch<B> {
  const { mode, outer, size, newSize, inner } = attributes;
  requireOneOf("resampleBackward", "mode", mode, resampleModes);
  requireLengths("resampleBackward", operands, {
    outGradient: outer * newSize * inner,
    inputGradient: outer * size * inner,
  });
  return {
    kernel: kernelOf(backward, attributes),
    bindings: [operands.outGradient, operands.inputGradient],
    scalars: scalarsOf(attributes),
  };
}

/**
 * Place o lies at (step · o + start) / unit of the input. With whole numbers the place is exact for every length of the axis, and
 * a program and its transpose agree.
 */
function scalarsOf({ mode, outer, size, newSize, inner, ratio }: ResampleAttributes) {
  const [unit, step] = ratio ?? [newSize, size];
  const edges = { step: 2 * step, start: step - unit, unit: 2 * unit };
  const corners = { step: size - 1, start: 0, unit: Math.max(1, newSize - 1) };
  const place = {
    nearest: { step, start: 0, unit },
    nearestExact: { step: 2 * step, start: step, unit: 2 * unit },
    linear: edges,
    linearCorners: corners,
    cubic: edges,
    cubicCorners: corners,
  }[mode];
  const columns = inner / unitOf(rowWalk(inner));
  return { outer, size, newSize, columns, ...place, blends: mode.startsWith("nearest") ? 0 : 1 };
}

const scalars = [
  { name: "outer", type: "u32" },
  { name: "size", type: "i32" },
  { name: "newSize", type: "i32" },
  { name: "columns", type: "u32" },
  { name: "step", type: "i32" },
  { name: "start", type: "i32" },
  { name: "unit", type: "i32" },
  { name: "blends", type: "i32" },
] as const;

/** The places that a place reads, and their weights. */
interface Curve {
  readonly name: "linear" | "cubic";
  /** The largest distance from a place to those that it reads. */
  readonly reach: number;
  readonly count: number;
  /** `fn taps(o: i32) -> Taps`: places `at` and their weights `by`; places with weight 0 are not read. */
  readonly taps: string;
  readonly tapsOf: (
    values: Readonly<Record<(typeof scalars)[number]["name"], number>>,
  ) => (o: number) => readonly (readonly [place: number, weight: number])[];
}

const linear: Curve = {
  name: "linear",
  reach: 1,
  count: 2,
  taps: /* wgsl */ `
struct Taps { at: vec2i, by: vec2f }
fn taps(o: i32) -> Taps {
  let n = max(s.step * o + s.start, 0);
  let low = min(n / s.unit, s.size - 1);
  let t = f32(s.blends * (n % s.unit)) / f32(s.unit);
  return Taps(vec2i(low, min(low + 1, s.size - 1)), vec2f(1.0 - t, t));
}
`,
  tapsOf:
    ({ size, step, start, unit, blends }) =>
    (o) => {
      const n = Math.max(step * o + start, 0);
      const low = Math.min(Math.floor(n / unit), size - 1);
      const t = (blends * (n % unit)) / unit;
      return [
        [low, 1 - t],
        [Math.min(low + 1, size - 1), t],
      ];
    },
};

const sharpness = -0.75;

/** The weight of a place whose distance is up to 1, and of one whose is between 1 and 2. */
const near = (d: number): number => ((sharpness + 2) * d - (sharpness + 3)) * d * d + 1;
const far = (d: number): number =>
  ((sharpness * d - 5 * sharpness) * d + 8 * sharpness) * d - 4 * sharpness;

const cubic: Curve = {
  name: "cubic",
  reach: 2,
  count: 4,
  taps: /* wgsl */ `
struct Taps { at: vec4i, by: vec4f }
fn near(d: f32) -> f32 { return (${sharpness + 2} * d - ${sharpness + 3}) * d * d + 1.0; }
fn far(d: f32) -> f32 { return ((${sharpness} * d + ${-5 * sharpness}) * d - ${-8 * sharpness}.0) * d + ${-4 * sharpness}.0; }
fn taps(o: i32) -> Taps {
  // Nothing lies further than one place before the first: so much is added before the division, which rounds towards zero.
  let n = s.step * o + s.start + s.unit;
  let low = n / s.unit - 1;
  let t = f32(n % s.unit) / f32(s.unit);
  return Taps(
    clamp(vec4i(low) + vec4i(-1, 0, 1, 2), vec4i(0), vec4i(s.size - 1)),
    vec4f(far(t + 1.0), near(t), near(1.0 - t), far(2.0 - t)),
  );
}
`,
  tapsOf:
    ({ size, step, start, unit }) =>
    (o) => {
      const low = Math.floor((step * o + start) / unit);
      const t = (step * o + start - low * unit) / unit;
      const weights = [far(t + 1), near(t), near(1 - t), far(2 - t)];
      return weights.map((weight, i) => [Math.min(Math.max(low - 1 + i, 0), size - 1), weight]);
    },
};

/** What a program loads and stores at a time, in WGSL. */
interface Moved {
  readonly zero: string;
  readonly load: string;
  /** The number of columns. */
  readonly columns: string;
}

interface Direction {
  readonly name: string;
  readonly input: string;
  readonly out: string;
  /** The size of the result's axis. */
  readonly axis: "size" | "newSize";
  /** Statements that end by returning what is moved to place `p` of the axis, for column `c` of row `o` of the outer axis. */
  value(moved: Moved, curve: Curve): string;
}

const forward: Direction = {
  name: "resample",
  input: "input",
  out: "out",
  axis: "newSize",
  // Without interpolation only one place is read: 0 times an infinity would be NaN.
  value: ({ load, columns }, { count }) => `
  let t = taps(p);
  let base = o * u32(s.size);
  var sum = ${load}_input((base + u32(t.at[0])) * ${columns} + c);
  if (s.blends == 0) { return sum; }
  sum *= t.by[0];
  for (var i = 1; i < ${count}; i++) { sum += t.by[i] * ${load}_input((base + u32(t.at[i])) * ${columns} + c); }
  return sum;`,
};

const backward: Direction = {
  name: "resampleBackward",
  input: "outGradient",
  out: "inputGradient",
  axis: "size",
  // The places that may read p: all before it at the lower end, all behind it at the upper end, and otherwise computed by
  // division.
  value: ({ zero, load, columns }, { count, reach }) => `
  var first = 0;
  var last = s.newSize - 1;
  if (p > 0 && s.step > 0) { first = max(((p - ${reach}) * s.unit - s.start) / s.step - 1, 0); }
  if (p < s.size - 1 && s.step > 0) { last = min(((p + ${reach}) * s.unit - s.start) / s.step + 1, last); }
  var sum = ${zero};
  for (var q = first; q <= last; q++) {
    let t = taps(q);
    var weight = 0.0;
    for (var i = 0; i < ${count}; i++) { weight += select(0.0, t.by[i], t.at[i] == p); }
    if (weight != 0.0) { sum += weight * ${load}_outGradient((o * u32(s.newSize) + u32(q)) * ${columns} + c); }
  }
  return sum;`,
};

function makeKernel(direction: Direction, curve: Curve, walk: RowWalk): Kernel {
  const { name, input, out, axis } = direction;
  const isGather = walk === "gather";
  const load = isGather ? "at" : "load";
  const lanes = [0, 1, 2, 3].map((l) => `value(index * 4u + ${l}u)`).join(", ");
  return defineWovenKernel({
    name,
    epilogue: "store",
    variant: `${curve.name}, ${walk}`,
    bindings: [
      { name: input, access: "read" },
      { name: out, access: "write" },
    ],
    scalars,
    streams: () => walk === "pairs",
    body(_context, _woven, quads = 1) {
      const inPairs = quads === 2;
      const type = inPairs ? "mat2x4f" : isGather ? "f32" : "vec4f";
      const columns = inPairs ? "(s.columns / 2u)" : "s.columns";
      const moved = { zero: inPairs ? "mat2x4f()" : `${type}(0.0)`, load, columns };
      return `${curve.taps}
fn value(e: u32) -> ${type} {
  let c = e % ${columns};
  let p = i32(e / ${columns} % u32(s.${axis}));
  let o = e / ${columns} / u32(s.${axis});${direction.value(moved, curve)}
}
${linearMain()}
  if (index * ${isGather ? 4 : 1}u >= s.outer * u32(s.${axis}) * ${columns}) { return; }
  store_${out}(index, ${isGather ? `vec4f(${lanes})` : "value(index)"});
}
`;
    },
    workgroups: (_scalars, [, length], _context, quads = 1) =>
      linearWorkgroups(Math.ceil((length as number) / (4 * quads))),
    reference([input, out], values) {
      const [x, y] = [input, out] as [KernelView, KernelView];
      const { outer, size, newSize } = values as Record<string, number> & ResampleAttributes;
      const inner = (values.columns as number) * unitOf(walk);
      const tapsAt = curve.tapsOf(values as Record<(typeof scalars)[number]["name"], number>);
      const sums = new Float64Array(y.length);
      const isForward = axis === "newSize";
      const [sizeIn, sizeOut] = isForward ? [size, newSize] : [newSize, size];
      for (let o = 0; o < outer; o++)
        for (let place = 0; place < newSize; place++)
          for (const [tap, weight] of tapsAt(place)) {
            if (weight === 0) continue;
            const [to, from] = isForward ? [place, tap] : [tap, place];
            const start = (o * sizeOut + to) * inner;
            const source = (o * sizeIn + from) * inner;
            for (let c = 0; c < inner; c++)
              sums[start + c] = (sums[start + c] as number) + weight * (x[source + c] as number);
          }
      y.set(sums);
    },
  });
}

const kernels = new Map<string, Kernel>();

function kernelOf(direction: Direction, { mode, inner }: ResampleAttributes): Kernel {
  const curve = mode.startsWith("cubic") ? cubic : linear;
  const walk = rowWalk(inner);
  const key = `${direction.name}, ${curve.name}, ${walk}`;
  const kernel = kernels.get(key) ?? makeKernel(direction, curve, walk);
  kernels.set(key, kernel);
  return kernel;
}
