import type { Module } from "./module.js";

/** A function that runs instead of a module's `forward`, which it may call. */
export type Interceptor = (
  forward: (...inputs: readonly unknown[]) => unknown,
  inputs: readonly unknown[],
) => unknown;

/**
 * Wraps the module's present `forward` by an interceptor. Returns a function that removes it; remove several in reverse
 * order.
 */
export function interceptForward(module: Module, interceptor: Interceptor): () => void {
  const own = Object.getOwnPropertyDescriptor(module, "forward");
  const inner = module.forward as (...inputs: readonly unknown[]) => unknown;
  const forward = (...inputs: readonly unknown[]): unknown =>
    interceptor((...given) => inner.apply(module, [...given]), inputs);
  // Not enumerable: a module's enumerable fields are its parts.
  Object.defineProperty(module, "forward", { value: forward, configurable: true, writable: true });
  return () => {
    if (own) Object.defineProperty(module, "forward", own);
    else Reflect.deleteProperty(module, "forward");
  };
}
