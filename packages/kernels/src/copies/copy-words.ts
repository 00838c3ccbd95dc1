import type { Binding, Launch } from "@halfstep/device";
import { defineKernel, linearMain, linearWorkgroups } from "../kernel.js";
import { requireLengths } from "../operands.js";

const kernel = defineKernel({
  name: "copyWords",
  bindings: [
    { name: "input", access: "read", unit: 1, dtypes: ["uint32"] },
    { name: "out", access: "write", unit: 1, dtypes: ["uint32"] },
  ],
  scalars: [{ name: "count", type: "u32" }],
  body: () => `${linearMain()}
  if (index < s.count) { store_out(index, load_input(index)); }
}
`,
  workgroups: ({ count }) => linearWorkgroups(count as number),
  reference([input, out]) {
    if (input) out?.set(input);
  },
});

/** Copies 32-bit words one by one. Unlike others it binds no more than the words, so that buffers may end inside a quad. */
export function copyWords<B>(operands: {
  readonly input: Binding<B>;
  readonly out: Binding<B>;
}): Launch<B> {
  const { input, out } = operands;
  requireLengths("copyWords", operands, { input: out.length, out: out.length });
  return { kernel, bindings: [input, out], scalars: { count: out.length } };
}
