import type { Binding, Kernel, KernelView, LaunchTarget } from "@halfstep/device";
import { defineKernel, linearMain, linearWorkgroups } from "./kernel.js";
import { requireLengths } from "./operands.js";
import { sortIndices } from "./sort-indices.js";

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
 * gradient of an embedding. Sums are float32, in the order of the source, and need no atomics: the places are sorted by index,
 * stably, and the segment of each is added up. Indices that are not below `size` are ignored.
 */
export function addRows<B>(
  target: LaunchTarget<B>,
  operands: { readonly index: Binding<B>; readonly source: Binding<B>; readonly out: Binding<B> },
  { outer, count, inner, size }: AddRowsAttributes,
): void {
  const { index, source, out } = operands;
  const length = outer * size * inner;
  requireLengths("addRows", operands, { index: count, source: outer * count * inner, out: length });
  const order = sortIndices(target, index, size);
  const unit = inner % 4 === 0 ? 4 : 1;
  target.launch({
    kernel: unit === 4 ? quads : lanes,
    bindings: [index, order, source, out],
    scalars: { length, size, inner: inner / unit, count },
  });
}

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
