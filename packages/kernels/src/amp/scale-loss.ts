import type { Binding, DType, KernelView, Launch } from "@halfstep/device";
import { flagBits, setFlag } from "../found-flag.js";
import { defineKernel, linearMain, linearWorkgroups } from "../kernel.js";
import { infinityOf, magnitudesWgsl } from "../wgsl/magnitudes.js";

const kernel = defineKernel({
  name: "scale-loss",
  bindings: [
    { name: "loss", access: "read" },
    { name: "state", access: "read", unit: 1, dtypes: ["float32"] },
    { name: "lossFlag", access: "readwrite", unit: 1, atomic: true, dtypes: ["uint32"] },
    { name: "scaled", access: "write", dtypes: ["float32"] },
  ],
  scalars: [
    { name: "count", type: "u32" },
    { name: "weight", type: "f32", runtime: true },
  ],
  body: ({ bindings: [loss] }) => `${magnitudesWgsl("loss", loss as { dtype: DType })}
${linearMain()}
  let q = index;
  if (q * 4u >= s.count) { return; }
  let inside = (vec4u(q * 4u) + vec4u(0u, 1u, 2u, 3u)) < vec4u(s.count);
  let bad = magnitudes_loss(q) >= vec4u(${infinityOf(loss as { dtype: DType })});
  if (any(bad & inside)) { or_lossFlag(0u, ${flagBits}u); }
  store_scaled(q, (load_loss(q) * s.weight) * at_state(0u));
}
`,
  workgroups: ({ count }) => linearWorkgroups(Math.ceil((count as number) / 4)),
  reference([loss, state, lossFlag, scaled], { weight }) {
    const values = loss as KernelView;
    const out = scaled as KernelView;
    const isWide = out instanceof Float64Array;
    const factor = isWide ? (weight as number) : Math.fround(weight as number);
    for (let i = 0; i < out.length; i++) {
      const value = values[i] as number;
      if (!Number.isFinite(value)) setFlag(lossFlag);
      out[i] = (isWide ? value * factor : Math.fround(value * factor)) * (state?.[0] as number);
    }
  },
});

/**
 * The float32 `scaled = (loss × weight) × scale`, where `state` is a scaler's float32 `[scale, 1 / scale, …]`. Sets the
 * float32 `lossFlag[0]` to 1 where an element of the loss is ±infinity or NaN.
 */
export function scaleLoss<B>(
  operands: {
    readonly loss: Binding<B>;
    readonly state: B;
    readonly lossFlag: B;
    readonly scaled: Binding<B>;
  },
  attributes: { readonly weight: number },
): Launch<B> {
  const { loss, state, lossFlag, scaled } = operands;
  return {
    kernel,
    bindings: [
      loss,
      { buffer: state, offset: 0, length: 2, dtype: "float32" },
      { buffer: lossFlag, offset: 0, length: 1, dtype: "uint32" },
      scaled,
    ],
    scalars: { count: loss.length, weight: attributes.weight },
  };
}
