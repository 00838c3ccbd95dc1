import type { Binding, Launch } from "@halfstep/device";
import { defineKernel, linearMain, linearWorkgroups } from "../kernel.js";

const kernel = defineKernel({
  name: "fill",
  bindings: [{ name: "x", access: "write" }],
  scalars: [
    { name: "count", type: "u32" },
    { name: "value", type: "f32", runtime: true },
  ],
  body: () => `${linearMain()}
  if (index * 4u >= s.count) { return; }
  store_x(index, vec4f(s.value));
}
`,
  workgroups: ({ count }) => linearWorkgroups(Math.ceil((count as number) / 4)),
  reference([x], { value }) {
    x?.fill(value as number);
  },
});

/** Sets every element of `x` to a finite number. */
export const fill = <B>(x: Binding<B>, value: number): Launch<B> => ({
  kernel,
  bindings: [x],
  scalars: { count: x.length, value },
});
