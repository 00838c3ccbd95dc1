import type { Binding, Kernel, KernelView, LaunchTarget } from "@halfstep/device";
import { defineKernel, linearMain, linearWorkgroups } from "./kernel.js";
import { requireLengths } from "./operands.js";

export interface AddRowsAttributes {
  /** The source is a contiguous [outer, count, inner]. */
  readonly outer: number;
  readonly count: number;
  readonly inner: number;
  /** The result is [outer, size, inner]. */
  readonly size: number;
}

/**
 * out[outer, size, inner] = for each place of the middle axis the sum of the source's places with that index (uint32, [count]): the
 * gradient of an embedding. Sums are float32, in the order of the source, and need no atomics: the first launch sorts the
 * places by index, stably, each counting those before it (count² comparisons); the second adds up the segment of each place.
 * Indices that are not below `size` are ignored.
 */
export function addRows<B>(
  target: LaunchTarget<B>,
  operands: { readonly index: Binding<B>; readonly source: Binding<B>; readonly out: Binding<B> },
  { outer, count, inner, size }: AddRowsAttributes,
): void {
  const { index, source, out } = operands;
  const length = outer * size * inner;
  requireLengths("addRows", operands, { index: count, source: outer * count * inner, out: length });
  const order: Binding<B> = {
    buffer: target.allocate(Math.max(count, 1) * 4),
    offset: 0,
    length: count,
    dtype: "uint32",
  };
  target.launch({ kernel: sort, bindings: [index, order], scalars: { count } });
  const unit = inner % 4 === 0 ? 4 : 1;
  target.launch({
    kernel: unit === 4 ? quads : lanes,
    bindings: [index, order, source, out],
    scalars: { length, size, inner: inner / unit, count },
  });
}

/** order = the places of `index`, sorted by its values; equal ones stay in order. */
const sort: Kernel = defineKernel({
  name: "sortIndices",
  bindings: [
    { name: "keys", access: "read", dtypes: ["uint32"] },
    { name: "order", access: "write", unit: 1, dtypes: ["uint32"] },
  ],
  scalars: [{ name: "count", type: "u32" }],
  body: () => `${linearMain()}
  if (index >= s.count) { return; }
  let own = vec4u(at_keys(index));
  var before = vec4u(0u);
  for (var q = 0u; q * 4u < s.count; q++) {
    let key = load_keys(q);
    let k = vec4u(q * 4u) + vec4u(0u, 1u, 2u, 3u);
    let isBefore = (key < own) | ((key == own) & (k < vec4u(index)));
    before += select(vec4u(0u), vec4u(1u), isBefore & (k < vec4u(s.count)));
  }
  store_order(before.x + before.y + before.z + before.w, index);
}
`,
  workgroups: ({ count }) => linearWorkgroups(count as number),
  reference([keys, order]) {
    const x = keys as KernelView;
    const places = Array.from(x, (_, k) => k).sort(
      (a, b) => (x[a] as number) - (x[b] as number) || a - b,
    );
    (order as KernelView).set(places);
  },
});

const segments = (unit: 1 | 4): Kernel => {
  const value = unit === 4 ? "vec4f" : "f32";
  const stored =
    unit === 4
      ? "total(index)"
      : `vec4f(${[0, 1, 2, 3].map((l) => `total(index * 4u + ${l}u)`).join(", ")})`;
  return defineKernel({
    name: "addSegments",
    variant: unit === 4 ? "quads" : "lanes",
    bindings: [
      { name: "keys", access: "read", unit: 1, dtypes: ["uint32"] },
      { name: "order", access: "read", unit: 1, dtypes: ["uint32"] },
      { name: "source", access: "read" },
      { name: "out", access: "write" },
    ],
    scalars: ["length", "size", "inner", "count"].map((name) => ({ name, type: "u32" })),
    body: () => `
fn total(e: u32) -> ${value} {
  let place = e / s.inner % s.size;
  let start = e / s.inner / s.size * s.count;
  // The first of the sorted places that is not below this one.
  var low = 0u;
  var high = s.count;
  while (low < high) {
    let middle = (low + high) / 2u;
    if (at_keys(at_order(middle)) < place) { low = middle + 1u; } else { high = middle; }
  }
  var sum = ${value}(0.0);
  for (var m = low; m < s.count; m++) {
    let k = at_order(m);
    if (at_keys(k) != place) { break; }
    sum += ${unit === 4 ? "load" : "at"}_source((start + k) * s.inner + e % s.inner);
  }
  return sum;
}
${linearMain()}
  if (index * 4u >= s.length) { return; }
  store_out(index, ${stored});
}
`,
    workgroups: ({ length }) => linearWorkgroups(Math.ceil((length as number) / 4)),
    reference([keys, , source, out], scalars) {
      const [rows, x, y] = [keys, source, out] as [KernelView, KernelView, KernelView];
      const { size, count } = scalars as { size: number; count: number };
      const inner = (scalars.inner as number) * unit;
      const sums = new Float64Array(y.length);
      for (let at = 0; at < x.length; at++) {
        const row = rows[Math.floor(at / inner) % count] as number;
        if (row >= size) continue;
        const to = (Math.floor(at / (inner * count)) * size + row) * inner + (at % inner);
        sums[to] = (sums[to] as number) + (x[at] as number);
      }
      y.set(sums);
    },
  });
};

const quads = segments(4);
const lanes = segments(1);
