import type { Binding, Kernel, KernelBinding, Launch } from "@halfstep/device";
import type { ObservableKernel } from "../kernel.js";
import type { StoreObserver } from "./store-observer.js";
import { weaveObserver } from "./weave-observer.js";

/** Whether the stores of a kernel can be observed. */
export const canObserveStores = (kernel: Kernel): kernel is ObservableKernel =>
  "withObserver" in kernel;

/**
 * The launch with an observer in the stores to `results`, the indices of floating bindings of access "write".
 *
 * @param words the observer's words, zero before the first launch that adds to them.
 * @param slots for observers with a slot for each result: the slots, in the order of `results`. Default 0.
 */
export function observingStores<B>(
  { kernel, bindings, scalars }: Launch<B> & { readonly kernel: ObservableKernel },
  results: readonly number[],
  {
    observer,
    words,
    slots = [],
  }: {
    readonly observer: StoreObserver;
    readonly words: Binding<B>;
    readonly slots?: readonly number[];
  },
): Launch<B> {
  const names = results.map((result) => (kernel.bindings[result] as KernelBinding).name);
  const values = names.map((name, i) =>
    observer.values(name, bindings[results[i] as number] as Binding<B>, slots[i] ?? 0),
  );
  return {
    kernel: kernel.withObserver(observer, names, weaveObserver),
    bindings: [...bindings, words],
    scalars: Object.assign({}, scalars, ...values),
  };
}
