import type { Binding, HalfDType, Kernel, Launch } from "@halfstep/device";
import { type ElementwiseKernel, elementwiseKernel } from "../elementwise.js";
import { identity } from "../expressions.js";
import { requireLengths } from "../operands.js";
import type { CopyingKernel } from "./weave.js";

const kernel: ElementwiseKernel = {
  ...elementwiseKernel({
    inputs: ["same"],
    steps: [{ expression: identity, operands: [0] }],
    outputs: [0],
  }),
  name: "copyValues",
};

/**
 * copy = values, rounded. Before the last update, `copy` has the rounded values. So the update may store the changed values in
 * it, and this launch is not needed: see {@link withCopy}.
 */
export function copyValues<B>(operands: {
  readonly values: Binding<B>;
  readonly copy: Binding<B> & { readonly dtype: HalfDType };
}): Launch<B> {
  const { values, copy } = operands;
  requireLengths("copyValues", operands, { values: copy.length, copy: values.length });
  return { kernel, bindings: [values, copy], scalars: { count: values.length, one: 1 } };
}

/** Whether a launch is one of {@link copyValues}. */
export const isCopyOfValues = (other: Kernel): boolean => other === kernel;

/** The update changed to store each of its values also into `copy`, rounded. The copy is as long as all values. */
export function withCopy<B>(
  update: Launch<B> & { readonly kernel: CopyingKernel },
  copy: Binding<B>,
): Launch<B> {
  const { bindings, scalars } = update;
  const named = new Map(update.kernel.bindings.map(({ name }, b) => [name, bindings[b]]));
  const copying = update.kernel.copying();
  return {
    kernel: copying,
    bindings: copying.bindings.map(({ name }) => (named.get(name) ?? copy) as Binding<B>),
    scalars,
  };
}
