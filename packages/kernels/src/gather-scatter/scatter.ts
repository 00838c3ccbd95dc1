import type { Binding, Kernel, KernelView, LaunchTarget } from "@halfstep/device";
import { requireOneOf } from "../attributes.js";
import { defineKernel, linearMain, linearWorkgroups } from "../kernel.js";
import { requireLengths, requireTarget } from "../operands.js";
import { scratch } from "../scratch.js";
import { launchSegments } from "./add-rows.js";

/** Shapes of a scatter along an axis. */
export interface ScatterAttributes {
  /** The base is a contiguous [outer, size, inner]. */
  readonly outer: number;
  readonly size: number;
  readonly inner: number;
  /** Places along the middle axis of source and index. */
  readonly count: number;
  /** "add" sums the elements for one place, in the order of the source; "assign" keeps the last one. */
  readonly op: "add" | "assign";
}

/** Up to so many places, each element of the result searches all of them, which is faster than sorting. */
const fewPlaces = 16;

/**
 * out = base [outer, size, inner] with the elements of source [outer, count, inner] written or added to the places that index
 * (uint32, a number for each element of the source) names along the middle axis. Without atomics, in a fixed order: more than a
 * few places are sorted, as in `addRows`. Indices that are not below `size` are ignored. Throws a `RangeError` for an unknown op and lengths
 * that do not fit.
 */
export function scatter<B>(
  target: LaunchTarget<B>,
  operands: {
    readonly base: Binding<B>;
    readonly index: Binding<B>;
    readonly source: Binding<B>;
    readonly out: Binding<B>;
  },
  attributes: ScatterAttributes,
): void {
  requireTarget("scatter", target);
  const { outer, size, inner, count, op } = attributes;
  requireOneOf("scatter", "op", op, ["add", "assign"]);
  const length = outer * size * inner;
  const given = outer * count * inner;
  requireLengths("scatter", operands, { base: length, index: given, source: given, out: length });
  const { base, index, source, out } = operands;
  if (count <= fewPlaces) {
    target.launch({
      kernel: kernels[op],
      bindings: [base, index, source, out],
      scalars: { length, size, inner, count },
    });
    return;
  }
  const places = scratch(target, given, "uint32");
  target.launch({
    kernel: flatPlaces,
    bindings: [index, places],
    scalars: { length, size, inner, count, given },
  });
  launchSegments(
    target,
    op === "add" ? "addTo" : "putRows",
    { index: places, base, source, out },
    { outer: 1, count: given, inner: 1, size: length },
  );
}

/** The element of the result to which each element of the source goes; `length` for invalid indices. */
const flatPlaces: Kernel = defineKernel({
  name: "scatterPlaces",
  bindings: [
    { name: "index", access: "read", unit: 1, dtypes: ["uint32"] },
    { name: "places", access: "write", unit: 1, dtypes: ["uint32"] },
  ],
  scalars: ["length", "size", "inner", "count", "given"].map((name) => ({ name, type: "u32" })),
  body: () => `${linearMain()}
  if (index >= s.given) { return; }
  let place = at_index(index);
  let line = index / s.inner / s.count * s.size + place;
  store_places(index, select(s.length, line * s.inner + index % s.inner, place < s.size));
}
`,
  workgroups: ({ given }) => linearWorkgroups(given as number),
  reference([index, places], scalars) {
    const { length, size, inner, count } = scalars as Readonly<
      Record<"length" | "size" | "inner" | "count", number>
    >;
    const [from, to] = [index, places] as [KernelView, KernelView];
    for (let at = 0; at < to.length; at++) {
      const place = from[at] as number;
      const line = Math.floor(at / (inner * count)) * size + place;
      to[at] = place < size ? line * inner + (at % inner) : length;
    }
  },
});

const makeKernel = (op: "add" | "assign"): Kernel =>
  defineKernel({
    name: "scatter",
    epilogue: "store",
    variant: op,
    bindings: [
      { name: "base", access: "read" },
      { name: "index", access: "read", unit: 1, dtypes: ["uint32"] },
      { name: "source", access: "read" },
      { name: "out", access: "write" },
    ],
    scalars: ["length", "size", "inner", "count"].map((name) => ({ name, type: "u32" })),
    body: () => `
fn value(e: u32) -> f32 {
  let place = e / s.inner % s.size;
  let start = e / s.inner / s.size * s.count * s.inner + e % s.inner;
  var result = at_base(e);
  for (var k = 0u; k < s.count; k++) {
    let at = start + k * s.inner;
    if (at_index(at) == place) { result ${op === "add" ? "+=" : "="} at_source(at); }
  }
  return result;
}
${linearMain()}
  if (index * 4u >= s.length) { return; }
  let e = index * 4u;
  store_out(index, vec4f(value(e), value(e + 1u), value(e + 2u), value(e + 3u)));
}
`,
    workgroups: ({ length }) => linearWorkgroups(Math.ceil((length as number) / 4)),
    reference([base, index, source, out], scalars) {
      const [start, places, x, y] = [base, index, source, out] as KernelView[] as [
        KernelView,
        KernelView,
        KernelView,
        KernelView,
      ];
      const { size, inner, count } = scalars as { size: number; inner: number; count: number };
      const sums = Float64Array.from(start);
      for (let at = 0; at < x.length; at++) {
        const place = places[at] as number;
        if (place >= size) continue;
        const o = Math.floor(at / (inner * count));
        const to = (o * size + place) * inner + (at % inner);
        sums[to] = (op === "add" ? (sums[to] as number) : 0) + (x[at] as number);
      }
      y.set(sums);
    },
  });

const kernels = { add: makeKernel("add"), assign: makeKernel("assign") };
