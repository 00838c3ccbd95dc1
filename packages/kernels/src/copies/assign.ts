import type { Binding, Kernel, Launch } from "@halfstep/device";
import { defineKernel, linearMain, linearWorkgroups } from "../kernel.js";
import { requireLengths, requireSameKind } from "../operands.js";
import { anyDType } from "./value-type.js";

const count = { name: "count", type: "u32" } as const;

/** out += input, elementwise and in place, added in float32. */
export function accumulate<B>(operands: {
  readonly input: Binding<B>;
  readonly out: Binding<B>;
}): Launch<B> {
  const { input, out } = operands;
  requireLengths("accumulate", operands, { input: out.length, out: out.length });
  return { kernel: accumulateKernel, bindings: [input, out], scalars: { count: out.length } };
}

/** Whether a kernel is that of `accumulate`. */
export const isAccumulation = (kernel: Kernel): boolean => kernel === accumulateKernel;

/**
 * out = input, but nothing changes where `unless[0]`, one float32, is not 0.
 *
 * @throws TypeError where integers would become floats, or the other way around
 */
export function assignUnless<B>(operands: {
  readonly input: Binding<B>;
  readonly unless: Binding<B>;
  readonly out: Binding<B>;
}): Launch<B> {
  const { input, unless, out } = operands;
  requireLengths("assignUnless", operands, { input: out.length, unless: 1, out: out.length });
  requireSameKind("assignUnless", [input], out);
  return {
    kernel: assignUnlessKernel,
    bindings: [input, unless, out],
    scalars: { count: out.length },
  };
}

const quads = (length: number): number => Math.ceil(length / 4);

const accumulateKernel: Kernel = defineKernel({
  name: "accumulate",
  bindings: [
    { name: "x", access: "read" },
    { name: "y", access: "readwrite" },
  ],
  storedOnce: ["y"],
  scalars: [count],
  body: () => `${linearMain()}  if (index * 4u >= s.count) { return; }
  store_y(index, load_y(index) + load_x(index));
}
`,
  workgroups: ({ count: length }) => linearWorkgroups(quads(length as number)),
  reference([x, y]) {
    if (x && y) for (let i = 0; i < y.length; i++) y[i] = (y[i] as number) + (x[i] as number);
  },
});

const assignUnlessKernel: Kernel = defineKernel({
  name: "assignUnless",
  bindings: [
    { name: "x", access: "read", dtypes: anyDType },
    { name: "flag", access: "read", unit: 1, dtypes: ["float32"] },
    { name: "y", access: "readwrite", dtypes: anyDType },
  ],
  scalars: [count],
  // Of the bits, because compilers may take NaN for equal to 0.
  body: () => `${linearMain()}  if (index * 4u >= s.count || (bitcast<u32>(at_flag(0u)) & 0x7fffffffu) != 0u) { return; }
  store_y(index, load_x(index));
}
`,
  workgroups: ({ count: length }) => linearWorkgroups(quads(length as number)),
  reference([x, flag, y]) {
    if (x && flag && y && flag[0] === 0) y.set(x as Float32Array);
  },
});
