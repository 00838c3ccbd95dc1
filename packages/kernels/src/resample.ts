import type { Binding, Kernel, KernelView, Launch } from "@halfstep/device";
import { defineKernel, linearMain, linearWorkgroups } from "./kernel.js";
import { requireLengths } from "./operands.js";

/** How places of a longer or shorter axis find theirs: the nearest below, or between two; "corners" keeps the ends in place. */
export type ResampleMode = "nearest" | "linear" | "linearCorners";

export interface ResampleAttributes {
  readonly mode: ResampleMode;
  /** The input is a contiguous [outer, size, inner], the result [outer, newSize, inner]. */
  readonly outer: number;
  readonly size: number;
  readonly newSize: number;
  readonly inner: number;
}

/** out = the input with its middle axis resampled, as one axis of torch.nn.functional.interpolate. */
export function resample<B>(
  operands: { readonly input: Binding<B>; readonly out: Binding<B> },
  attributes: ResampleAttributes,
): Launch<B> {
  const { outer, size, newSize, inner } = attributes;
  requireLengths("resample", operands, {
    input: outer * size * inner,
    out: outer * newSize * inner,
  });
  return {
    kernel: inner % 4 === 0 ? kernels.quads : kernels.lanes,
    bindings: [operands.input, operands.out],
    scalars: scalarsOf(attributes),
  };
}

/** The transpose of {@link resample}: gradients of its result brought back to its input, in a fixed order. */
export function resampleBackward<B>(
  operands: { readonly outGradient: Binding<B>; readonly inputGradient: Binding<B> },
  attributes: ResampleAttributes,
): Launch<B> {
  const { outer, size, newSize, inner } = attributes;
  requireLengths("resampleBackward", operands, {
    outGradient: outer * newSize * inner,
    inputGradient: outer * size * inner,
  });
  return {
    kernel: inner % 4 === 0 ? backwardKernels.quads : backwardKernels.lanes,
    bindings: [operands.outGradient, operands.inputGradient],
    scalars: scalarsOf(attributes),
  };
}

/**
 * Place o lies at (step · o + start) / unit of the input. Whole numbers: where it lies is exact, however long the axis, and a
 * program and its transpose cannot disagree.
 */
function scalarsOf({ mode, outer, size, newSize, inner }: ResampleAttributes) {
  const place = {
    nearest: { step: size, start: 0, unit: newSize },
    linear: { step: 2 * size, start: size - newSize, unit: 2 * newSize },
    linearCorners: { step: size - 1, start: 0, unit: Math.max(1, newSize - 1) },
  }[mode];
  const columns = inner % 4 === 0 ? inner / 4 : inner;
  return { outer, size, newSize, columns, ...place, blends: mode === "nearest" ? 0 : 1 };
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

const taps = /* wgsl */ `
struct Taps { low: i32, high: i32, weight: f32 }
fn taps(o: i32) -> Taps {
  let n = max(s.step * o + s.start, 0);
  let low = min(n / s.unit, s.size - 1);
  return Taps(low, min(low + s.blends, s.size - 1), f32(s.blends * (n % s.unit)) / f32(s.unit));
}
`;

interface Place {
  readonly low: number;
  readonly high: number;
  readonly weight: number;
}

function tapsOf(values: Readonly<Record<string, number>>): (o: number) => Place {
  const { size, step, start, unit, blends } = values as Record<
    (typeof scalars)[number]["name"],
    number
  >;
  return (o) => {
    const n = Math.max(step * o + start, 0);
    const low = Math.min(Math.floor(n / unit), size - 1);
    return { low, high: Math.min(low + blends, size - 1), weight: (blends * (n % unit)) / unit };
  };
}

interface Direction {
  readonly name: string;
  readonly input: string;
  readonly out: string;
  /** The size of the result's axis. */
  readonly axis: "size" | "newSize";
  /** Statements that end by returning the element at place `p` of the axis, for column `c` of row `o` of the outer axis. */
  value(type: string, load: string): string;
  accumulate(
    place: Place,
    from: number,
    visit: (out: number, from: number, w: number) => void,
  ): void;
}

const forward: Direction = {
  name: "resample",
  input: "input",
  out: "out",
  axis: "newSize",
  value: (_, load) => `
  let t = taps(p);
  let base = o * u32(s.size);
  let low = ${load}_input((base + u32(t.low)) * s.columns + c);
  if (s.blends == 0) { return low; }
  return low * (1.0 - t.weight) + ${load}_input((base + u32(t.high)) * s.columns + c) * t.weight;`,
  accumulate({ low, high, weight }, at, visit) {
    visit(at, low, 1 - weight);
    if (weight !== 0) visit(at, high, weight);
  },
};

const backward: Direction = {
  name: "resampleBackward",
  input: "outGradient",
  out: "inputGradient",
  axis: "size",
  // The places that may read p: all before it at the lower end, all behind it at the upper, and between by division.
  value: (type, load) => `
  var first = 0;
  var last = s.newSize - 1;
  if (p > 0 && s.step > 0) { first = max(((p - 1) * s.unit - s.start) / s.step - 1, 0); }
  if (p < s.size - 1 && s.step > 0) { last = min(((p + 1) * s.unit - s.start) / s.step + 1, last); }
  var sum = ${type}(0.0);
  for (var q = first; q <= last; q++) {
    let t = taps(q);
    let weight = select(0.0, 1.0 - t.weight, t.low == p) + select(0.0, t.weight, t.high == p);
    if (weight != 0.0) { sum += weight * ${load}_outGradient((o * u32(s.newSize) + u32(q)) * s.columns + c); }
  }
  return sum;`,
  accumulate({ low, high, weight }, at, visit) {
    visit(low, at, 1 - weight);
    if (weight !== 0) visit(high, at, weight);
  },
};

function makeKernel(direction: Direction, walk: "quads" | "lanes"): Kernel {
  const { name, input, out, axis } = direction;
  const isQuads = walk === "quads";
  const type = isQuads ? "vec4f" : "f32";
  const lanes = [0, 1, 2, 3].map((l) => `value(index * 4u + ${l}u)`).join(", ");
  return defineKernel({
    name,
    variant: walk,
    bindings: [
      { name: input, access: "read" },
      { name: out, access: "write" },
    ],
    scalars,
    body: () => `${taps}
fn value(e: u32) -> ${type} {
  let c = e % s.columns;
  let p = i32(e / s.columns % u32(s.${axis}));
  let o = e / s.columns / u32(s.${axis});${direction.value(type, isQuads ? "load" : "at")}
}
${linearMain()}
  if (index * ${isQuads ? 1 : 4}u >= s.outer * u32(s.${axis}) * s.columns) { return; }
  store_${out}(index, ${isQuads ? "value(index)" : `vec4f(${lanes})`});
}
`,
    workgroups: (_, [, length]) => linearWorkgroups(Math.ceil((length as number) / 4)),
    reference([input, out], values) {
      const [x, y] = [input, out] as [KernelView, KernelView];
      const { outer, size, newSize } = values as Record<string, number> & ResampleAttributes;
      const inner = (values.columns as number) * (isQuads ? 4 : 1);
      const tapsAt = tapsOf(values);
      const sums = new Float64Array(y.length);
      const [sizeIn, sizeOut] = axis === "newSize" ? [size, newSize] : [newSize, size];
      for (let o = 0; o < outer; o++)
        for (let place = 0; place < newSize; place++)
          direction.accumulate(tapsAt(place), place, (to, from, w) => {
            const start = (o * sizeOut + to) * inner;
            const source = (o * sizeIn + from) * inner;
            for (let c = 0; c < inner; c++)
              sums[start + c] = (sums[start + c] as number) + w * (x[source + c] as number);
          });
      y.set(sums);
    },
  });
}

const kernels = { quads: makeKernel(forward, "quads"), lanes: makeKernel(forward, "lanes") };
const backwardKernels = {
  quads: makeKernel(backward, "quads"),
  lanes: makeKernel(backward, "lanes"),
};
