import { defineFunction, type Tensor } from "@halfstep/tensor/functional";
import { shown } from "./arguments.js";

/**
 * Sees the arguments of a module before its `forward`. What it returns, unless undefined, replaces them: a list of arguments, or the only
 * argument.
 */
export type ForwardPreHook<M extends object> = (module: M, inputs: readonly unknown[]) => unknown;
/** Sees the result of a module. What it returns, unless undefined, is the result instead. */
export type ForwardHook<M extends object> = (
  module: M,
  inputs: readonly unknown[],
  output: unknown,
) => unknown;
/** Sees the gradient of a module's result in the backward pass. What it returns, unless undefined, is the gradient instead. */
export type GradientHook<M extends object> = (module: M, gradient: Tensor) => Tensor | undefined;

/** Takes back what registered it. */
export type RemoveHook = () => void;

/** The hooks of one module, in the order in which they were registered. */
export class Hooks<M extends object> {
  readonly #before = new Map<object, ForwardPreHook<M>>();
  readonly #after = new Map<object, ForwardHook<M>>();
  readonly #gradient = new Map<object, GradientHook<M>>();

  addBefore(hook: ForwardPreHook<M>): RemoveHook {
    return added("registerForwardPreHook", this.#before, hook);
  }
  addAfter(hook: ForwardHook<M>): RemoveHook {
    return added("registerForwardHook", this.#after, hook);
  }
  addGradient(hook: GradientHook<M>): RemoveHook {
    return added("registerGradientHook", this.#gradient, hook);
  }

  /** Runs `forward` between the hooks. */
  run(
    module: M,
    forward: (...inputs: readonly unknown[]) => unknown,
    given: readonly unknown[],
  ): unknown {
    let inputs = given;
    for (const hook of this.#before.values()) {
      const replaced = hook(module, inputs) ?? inputs;
      inputs = Array.isArray(replaced) ? replaced : [replaced];
    }
    let output = forward(...inputs);
    for (const hook of this.#after.values()) output = hook(module, inputs, output) ?? output;
    // The backward pass meets the hook that was put on last first.
    for (const hook of [...this.#gradient.values()].reverse())
      output = hookGradient(asTensor(module, output), (gradient) => hook(module, gradient));
    return output;
  }
}

/** One function may be registered several times. */
function added<H>(method: string, hooks: Map<object, H>, hook: H): RemoveHook {
  requireFunction(method, hook);
  const key = {};
  hooks.set(key, hook);
  return () => void hooks.delete(key);
}

/** @throws TypeError where a hook is no function, which would fail only in a later forward or backward pass */
function requireFunction(method: string, hook: unknown): void {
  if (typeof hook !== "function")
    throw new TypeError(`${method}(hook): hook is ${shown(hook)}; pass a function`);
}

function asTensor(module: object, output: unknown): Tensor {
  if (typeof output === "object" && output !== null && "isTensor" in output)
    return output as Tensor;
  throw new TypeError(
    `a gradient hook needs a module whose result is a tensor: use hookGradient() on one of the results of ${module.constructor.name}`,
  );
}

/**
 * x, with a hook on its gradient, as torch's `register_hook`: use the result in place of x. The hook is called in the backward pass, and
 * records there like any op.
 */
export const hookGradient: (x: Tensor, hook: (gradient: Tensor) => Tensor | undefined) => Tensor =
  defineFunction({
    name: "hookGradient",
    forward(context, x: Tensor, hook: (gradient: Tensor) => Tensor | undefined) {
      requireFunction("hookGradient", hook);
      hooked.set(context, hook);
      return x;
    },
    backward: (context, gradient) => [hooked.get(context)?.(gradient) ?? gradient, undefined],
  });

/** The hook of each application. */
const hooked = new WeakMap<object, (gradient: Tensor) => Tensor | undefined>();
