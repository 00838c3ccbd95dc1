import type { Binding, Kernel, KernelView, Launch } from "@halfstep/device";
import { anyDType, valueType } from "../copies/value-type.js";
import { defineKernel, linearMain, linearWorkgroups } from "../kernel.js";
import { requireLengths } from "../operands.js";

/** Shapes of a gather along an axis. */
export interface GatherAttributes {
  /** The input is a contiguous [outer, size, inner]. */
  readonly outer: number;
  readonly size: number;
  readonly inner: number;
  /** Places along the middle axis of the result. */
  readonly count: number;
  /** "rows": one index for each place, [count]. "each": one for every element of the result, [outer, count, inner]. */
  readonly indexing: "rows" | "each";
}

/**
 * out[outer, count, inner] = input[outer, index, inner], of any dtype, by uint32 indices. An index that is not below `size` gives NaN,
 * or 0 for integers, because a kernel cannot throw.
 */
export function gather<B>(
  operands: { readonly input: Binding<B>; readonly index: Binding<B>; readonly out: Binding<B> },
  { outer, size, inner, count, indexing }: GatherAttributes,
): Launch<B> {
  const isEach = indexing === "each";
  const length = outer * count * inner;
  requireLengths("gather", operands, {
    input: outer * size * inner,
    index: isEach ? length : count,
    out: length,
  });
  const unit = !isEach && inner % 4 === 0 ? 4 : 1;
  return {
    kernel: kernels[isEach ? "each" : unit === 4 ? "quads" : "rows"],
    bindings: [operands.input, operands.index, operands.out],
    scalars: { length, size, inner: inner / unit, count },
  };
}

type Walk = "quads" | "rows" | "each";

const makeKernel = (walk: Walk): Kernel =>
  defineKernel({
    name: "gather",
    epilogue: "store",
    variant: walk,
    bindings: [
      { name: "input", access: "read", dtypes: anyDType },
      { name: "index", access: "read", unit: 1, dtypes: ["uint32"] },
      { name: "out", access: "write", dtypes: anyDType },
    ],
    scalars: ["length", "size", "inner", "count"].map((name) => ({ name, type: "u32" })),
    body({ bindings }) {
      const scalar = valueType(bindings[2]?.dtype);
      const value = walk === "quads" ? `vec4<${scalar}>` : scalar;
      // WGSL has no constant for NaN.
      const missing = scalar === "f32" ? "bitcast<f32>(0x7fc00000u | min(e, 1u))" : `${scalar}(0)`;
      const lanes = [0, 1, 2, 3].map((l) => `value(index * 4u + ${l}u)`).join(", ");
      return `
fn value(e: u32) -> ${value} {
  let i = e % s.inner;
  let k = e / s.inner % s.count;
  let o = e / s.inner / s.count;
  let row = at_index(${walk === "each" ? "e" : "k"});
  if (row >= s.size) { return ${value}(${missing}); }
  return ${walk === "quads" ? "load" : "at"}_input((o * s.size + row) * s.inner + i);
}
${linearMain()}
  if (index * 4u >= s.length) { return; }
  store_out(index, ${walk === "quads" ? "value(index)" : `vec4<${scalar}>(${lanes})`});
}
`;
    },
    workgroups: ({ length }) => linearWorkgroups(Math.ceil((length as number) / 4)),
    reference([input, index, out], scalars) {
      const [x, rows, y] = [input, index, out] as [KernelView, KernelView, KernelView];
      const { length, size, count } = scalars as Record<string, number> & GatherAttributes;
      const inner = (scalars.inner as number) * (walk === "quads" ? 4 : 1);
      for (let e = 0; e < (length as number); e++) {
        const k = Math.floor(e / inner) % count;
        const o = Math.floor(e / inner / count);
        const row = rows[walk === "each" ? e : k] as number;
        y[e] = row < size ? (x[(o * size + row) * inner + (e % inner)] as number) : Number.NaN;
      }
    },
  });

const kernels: Record<Walk, Kernel> = {
  quads: makeKernel("quads"),
  rows: makeKernel("rows"),
  each: makeKernel("each"),
};

/** Whether a kernel is that of a {@link gather}. */
export const isGather = (kernel: Kernel): boolean => Object.values(kernels).includes(kernel);
