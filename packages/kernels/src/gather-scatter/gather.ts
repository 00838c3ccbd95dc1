import type { Binding, Kernel, KernelView, Launch } from "@halfstep/device";
import { requireOneOf } from "../attributes.js";
import { anyDType, valueType } from "../copies/value-type.js";
import { defineWovenKernel, linearMain, linearWorkgroups } from "../kernel.js";
import { requireLengths, requireSameKind } from "../operands.js";
import { byRowWalk, type RowWalk, rowWalk, unitOf } from "../wgsl/quad-units.js";

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
 *
 * @throws RangeError where lengths and attributes disagree. TypeError where integers would become floats, or the other way around.
 */
export function gather<B>(
  operands: { readonly input: Binding<B>; readonly index: Binding<B>; readonly out: Binding<B> },
  { outer, size, inner, count, indexing }: GatherAttributes,
): Launch<B> {
  requireOneOf("gather", "indexing", indexing, ["rows", "each"]);
  const isEach = indexing === "each";
  const length = outer * count * inner;
  requireLengths("gather", operands, {
    input: outer * size * inner,
    index: isEach ? length : count,
    out: length,
  });
  requireSameKind("gather", [operands.input], operands.out);
  const walk = isEach ? "gather" : rowWalk(inner);
  return {
    kernel: isEach ? eachKernel : rowKernels[walk],
    bindings: [operands.input, operands.index, operands.out],
    scalars: { length, size, inner: inner / unitOf(walk), count },
  };
}

/** @param isEach whether each element has an index of its own, and not only each row. */
const makeKernel = (walk: RowWalk, isEach: boolean): Kernel =>
  defineWovenKernel({
    name: "gather",
    epilogue: "store",
    variant: isEach ? "each" : walk,
    bindings: [
      { name: "input", access: "read", dtypes: anyDType },
      { name: "index", access: "read", unit: 1, dtypes: ["uint32"] },
      { name: "out", access: "write", dtypes: anyDType },
    ],
    scalars: ["length", "size", "inner", "count"].map((name) => ({ name, type: "u32" })),
    streams: (_, name) => walk === "pairs" && name !== "index",
    body({ bindings }, _, quads = 1) {
      const scalar = valueType(bindings[2]?.dtype);
      const quad = `vec4<${scalar}>`;
      const isQuads = unitOf(walk) === 4;
      const value = quads === 2 ? "mat2x4f" : isQuads ? quad : scalar;
      const inner = quads === 2 ? "(s.inner / 2u)" : "s.inner";
      // WGSL has no constant for NaN.
      const missing = scalar === "f32" ? "bitcast<f32>(0x7fc00000u | min(e, 1u))" : `${scalar}(0)`;
      const nothing = quads === 2 ? `${quad}(${missing}), ${quad}(${missing})` : missing;
      const lanes = [0, 1, 2, 3].map((l) => `value(index * 4u + ${l}u)`).join(", ");
      return `
fn value(e: u32) -> ${value} {
  let i = e % ${inner};
  let k = e / ${inner} % s.count;
  let o = e / ${inner} / s.count;
  let row = at_index(${isEach ? "e" : "k"});
  if (row >= s.size) { return ${value}(${nothing}); }
  return ${isQuads ? "load" : "at"}_input((o * s.size + row) * ${inner} + i);
}
${linearMain()}
  if (index * ${4 * quads}u >= s.length) { return; }
  store_out(index, ${isQuads ? "value(index)" : `${quad}(${lanes})`});
}
`;
    },
    workgroups: ({ length }, _lengths, _context, quads = 1) =>
      linearWorkgroups(Math.ceil((length as number) / (4 * quads))),
    reference([input, index, out], scalars) {
      const [x, rows, y] = [input, index, out] as [KernelView, KernelView, KernelView];
      const { length, size, count } = scalars as Record<string, number> & GatherAttributes;
      const inner = (scalars.inner as number) * unitOf(walk);
      for (let e = 0; e < (length as number); e++) {
        const k = Math.floor(e / inner) % count;
        const o = Math.floor(e / inner / count);
        const row = rows[isEach ? e : k] as number;
        y[e] = row < size ? (x[(o * size + row) * inner + (e % inner)] as number) : Number.NaN;
      }
    },
  });

const rowKernels = byRowWalk((walk) => makeKernel(walk, false));
const eachKernel = makeKernel("gather", true);

/** Whether a kernel is that of a {@link gather}. */
export const isGather = (kernel: Kernel): boolean =>
  kernel === eachKernel || Object.values(rowKernels).includes(kernel);
