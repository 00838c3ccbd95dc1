import type { Binding, Kernel, Launch } from "@halfstep/device";
import type { TwinnableKernel } from "./kernel.js";

/** Whether a kernel can store a result a second time, in another format. */
export const canStoreTwice = (kernel: Kernel): kernel is TwinnableKernel => "withTwin" in kernel;

/**
 * The launch changed to store its float32 binding `result` also into `twin`: as many elements, rounded to the format of `twin`.
 */
export function storingTwice<B>(
  { kernel, bindings, scalars }: Launch<B> & { readonly kernel: TwinnableKernel },
  result: number,
  twin: Binding<B>,
): Launch<B> {
  const { name } = kernel.bindings[result] as TwinnableKernel["bindings"][number];
  return { kernel: kernel.withTwin(name), bindings: [...bindings, twin], scalars };
}
