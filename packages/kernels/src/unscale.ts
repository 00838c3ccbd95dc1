import type { Binding, DType, KernelView, Launch } from "@halfstep/device";
import { flagBits, inRangeWgsl, nonFiniteWgsl, setFlag } from "./check-finite.js";
import { defineKernel, linearMain, linearWorkgroups } from "./kernel.js";

const kernel = defineKernel({
  name: "unscale",
  bindings: [
    { name: "x", access: "readwrite" },
    { name: "state", access: "read", unit: 1, dtypes: ["float32"] },
    { name: "foundInf", access: "readwrite", unit: 1, atomic: true, dtypes: ["uint32"] },
  ],
  scalars: [{ name: "count", type: "u32" }],
  body: ({ bindings: [x] }) => `${nonFiniteWgsl("x", x as { dtype: DType })}
${linearMain()}
  let q = index;
  if (q * 4u >= s.count) { return; }
  let inside = ${inRangeWgsl};
  if (any(nonfinite_x(q) & inside)) { or_foundInf(0u, ${flagBits}u); }
  // A range may end inside a quad that goes on with elements of somebody else.
  let v = load_x(q);
  store_x(q, select(v, v * at_state(1u), inside));
}
`,
  workgroups: ({ count }) => linearWorkgroups(Math.ceil((count as number) / 4)),
  reference([x, state, foundInf]) {
    const values = x as KernelView;
    const inverse = state?.[1] as number;
    let allFinite = true;
    for (let i = 0; i < values.length; i++) {
      const value = values[i] as number;
      allFinite &&= Number.isFinite(value);
      values[i] = value * inverse;
    }
    if (!allFinite) setFlag(foundInf);
  },
});

/**
 * Multiplies `x` in place by the reciprocal of the loss scale, in float32, and sets the float32 `foundInf[0]` to 1 where
 * any element came in as ±infinity or NaN. `state` is a scaler's float32 `[scale, 1 / scale, …]`. Exact for scales that
 * are powers of two, short of subnormal results.
 */
export function unscale<B>(operands: {
  readonly x: Binding<B>;
  readonly state: B;
  readonly foundInf: B;
}): Launch<B> {
  const { x, state, foundInf } = operands;
  return {
    kernel,
    bindings: [
      x,
      { buffer: state, offset: 0, length: 2, dtype: "float32" },
      { buffer: foundInf, offset: 0, length: 1, dtype: "uint32" },
    ],
    scalars: { count: x.length },
  };
}
