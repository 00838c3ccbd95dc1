import type { Binding, HalfDType, Kernel, Launch } from "@halfstep/device";
import type { AccumulableKernel } from "./kernel.js";
import { wovenName } from "./woven-names.js";

/** Whether a kernel declares that it stores each unit of the binding at an index exactly once. */
export const storesOnce = (kernel: Kernel, result: number): kernel is AccumulableKernel =>
  "storedOnce" in kernel &&
  (kernel as AccumulableKernel).storedOnce.includes(kernel.bindings[result]?.name ?? "");

/** Whether a kernel can add its result, the binding at an index, to the existing contents instead of storing it. */
export const canAccumulate = (kernel: Kernel, result: number): kernel is AccumulableKernel =>
  storesOnce(kernel, result) && kernel.bindings[result]?.access === "write";

/**
 * The launch changed to add its result, the binding at index `result`, to `sum`: the same bits as the launch followed by `accumulate`.
 *
 * @param rounding the format to which the result alone would have been rounded.
 */
export function accumulating<B>(
  { kernel, bindings, scalars }: Launch<B> & { readonly kernel: AccumulableKernel },
  result: number,
  sum: Binding<B>,
  rounding?: HalfDType,
): Launch<B> {
  const { name } = kernel.bindings[result] as AccumulableKernel["bindings"][number];
  const adding = kernel.accumulating(name, rounding);
  const one = wovenName("one");
  const needsOne = adding.scalars.some((scalar) => scalar.name === one);
  return {
    kernel: adding,
    bindings: bindings.map((binding, b) => (b === result ? sum : binding)),
    scalars: needsOne ? { ...scalars, [one]: 1 } : scalars,
  };
}
