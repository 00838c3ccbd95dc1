import type { Binding, KernelView, Launch } from "@halfstep/device";
import { defineKernel, linearMain, linearWorkgroups } from "../kernel.js";

const kernel = defineKernel({
  name: "average-sums",
  bindings: [{ name: "x", access: "readwrite" }],
  scalars: [
    { name: "count", type: "u32" },
    { name: "factor", type: "f32", runtime: true },
  ],
  body: () => `${linearMain()}  if (index * 4u >= s.count) { return; }
  let v = load_x(index);
  let isFinite = (bitcast<vec4u>(v) & vec4u(0x7f800000u)) != vec4u(0x7f800000u);
  store_x(index, select(v, v * s.factor, isFinite));
}
`,
  workgroups: ({ count }) => linearWorkgroups(Math.ceil((count as number) / 4)),
  reference([x], { factor }) {
    const values = x as KernelView;
    for (let i = 0; i < values.length; i++) values[i] = (values[i] as number) * (factor as number);
  },
});

/** Multiplies `x` in place by the float32 nearest to `1 / parts`. Infinities and NaN stay. */
export function averageSums<B>(x: Binding<B>, attributes: { readonly parts: number }): Launch<B> {
  const factor = Math.fround(1 / attributes.parts);
  return { kernel, bindings: [x], scalars: { count: x.length, factor } };
}
