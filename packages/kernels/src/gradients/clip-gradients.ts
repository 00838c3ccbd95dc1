import type { Binding, KernelView, Launch } from "@halfstep/device";
import { floatsOf } from "../amp/update-scale.js";
import { defineKernel, linearMain, linearWorkgroups } from "../kernel.js";
import { loweredWgsl } from "../square-sums.js";

const clipKernel = defineKernel({
  name: "clip-gradients",
  bindings: [
    { name: "x", access: "readwrite" },
    { name: "norm", access: "read", unit: 1, dtypes: ["uint32"] },
  ],
  scalars: [{ name: "count", type: "u32" }],
  // A GPU may flush a subnormal factor to 0. Its bits are an integer, × 2^-149.
  body: () => `${loweredWgsl}${linearMain()}
  if (index * 4u >= s.count) { return; }
  let factor = at_norm(1u);
  if (factor == 0x3f800000u) { return; }
  let v = load_x(index);
  var clipped = v * bitcast<f32>(factor);
  if (factor < 0x00800000u) { clipped = lowered(v, 64u) * (f32(factor) * 0x1p-85f); }
  store_x(index, select(clipped, v, v == vec4f()));
}
`,
  workgroups: ({ count }) => linearWorkgroups(Math.ceil((count as number) / 4)),
  reference([x, norm]) {
    const values = x as KernelView;
    const factor = floatsOf(norm)[1] as number;
    if (factor === 1) return;
    for (let i = 0; i < values.length; i++)
      if (values[i] !== 0) values[i] = (values[i] as number) * factor;
  },
});

/**
 * Multiplies `x` in place by the factor of `gradientNorm`; a factor of 1 changes no bit. Zeros stay zeros even if the
 * factor is NaN: otherwise the gaps between parameters of a flat buffer would stay NaN.
 */
export function clipGradients<B>(operands: {
  readonly x: Binding<B>;
  readonly norm: B;
}): Launch<B> {
  const { x, norm } = operands;
  return {
    kernel: clipKernel,
    bindings: [x, { buffer: norm, offset: 0, length: 2, dtype: "uint32" }],
    scalars: { count: x.length },
  };
}

const clampKernel = defineKernel({
  name: "clamp-gradients",
  bindings: [
    { name: "x", access: "readwrite" },
    { name: "scale", access: "read", unit: 1, dtypes: ["float32"] },
  ],
  scalars: [
    { name: "count", type: "u32" },
    { name: "limit", type: "f32", runtime: true },
  ],
  // Comparisons instead of clamp(), which may drop a NaN.
  body: () => `${linearMain()}
  if (index * 4u >= s.count) { return; }
  let limit = vec4f(s.limit * at_scale(0u));
  let v = load_x(index);
  store_x(index, select(select(v, limit, v > limit), -limit, v < -limit));
}
`,
  workgroups: ({ count }) => linearWorkgroups(Math.ceil((count as number) / 4)),
  reference([x, scale], { limit }) {
    const values = x as KernelView;
    const most = Math.fround((limit as number) * (scale?.[0] as number));
    for (let i = 0; i < values.length; i++) {
      const v = values[i] as number;
      values[i] = v > most ? most : v < -most ? -most : v;
    }
  },
});

/**
 * Clamps `x` in place to ±`limit` times the scale that it still carries, element 0 of the float32 `scale`, as
 * torch.nn.utils.clip_grad_value_ does. A NaN stays NaN; an infinity becomes the limit, so check for overflow before.
 */
export function clampGradients<B>(
  operands: { readonly x: Binding<B>; readonly scale: B },
  attributes: { readonly limit: number },
): Launch<B> {
  const { x, scale } = operands;
  return {
    kernel: clampKernel,
    bindings: [x, { buffer: scale, offset: 0, length: 2, dtype: "float32" }],
    scalars: { count: x.length, limit: attributes.limit },
  };
}
