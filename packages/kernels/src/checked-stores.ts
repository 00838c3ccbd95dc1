import type { Binding, Kernel, KernelBinding, Launch } from "@halfstep/device";
import type { CheckableKernel } from "./kernel.js";

/** Whether a kernel can look for what is not finite in what it stores. */
export const canCheckStores = (kernel: Kernel): kernel is CheckableKernel => "withCheck" in kernel;

/**
 * The launch, which sets a flag where it stores ±infinity or NaN in one of these `results`: places of float32 bindings of access
 * "write". It finds what `checkFinite` finds in them, `rounding` of the bindings included.
 *
 * It looks at numbers in registers, where the compiler of a driver that was told of no infinities may assume that there are none; those
 * that compute on a CPU do not.
 */
export function checkingStores<B>(
  { kernel, bindings, scalars }: Launch<B> & { readonly kernel: CheckableKernel },
  results: readonly number[],
  foundInf: Binding<B>,
): Launch<B> {
  const names = results.map((result) => (kernel.bindings[result] as KernelBinding).name);
  return { kernel: kernel.withCheck(names), bindings: [...bindings, foundInf], scalars };
}
