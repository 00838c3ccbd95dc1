import type { CastDecision } from "./cast-decision.js";

/** The module, composite and backward rule to which an op belongs, for notes and traces. */
export interface Scope {
  /** Path of the module whose `forward` runs, or ran. */
  readonly path: () => string;
  /** The outermost composite that applies the op, if any. */
  readonly composite?: string;
  /** What autocast decided for the composite. */
  readonly decision?: CastDecision;
  /** The op whose gradient is being computed, in backward passes. */
  readonly backwardOf?: string;
}

let current: Scope | undefined;

/** Runs `fn` with its ops assigned to a module, as `Module` of `@halfstep/nn` does around `forward`. */
export const withScope = <T>(path: () => string, fn: () => T): T => inScope({ path }, fn);

/** @internal */
export function inScope<T>(scope: Scope | undefined, fn: () => T): T {
  const outer = current;
  current = scope;
  try {
    return fn();
  } finally {
    current = outer;
  }
}

/** @internal Runs `fn` on each item, in the scope of that item. */
export function inEachScope<T>(
  items: readonly T[],
  scopeOf: (item: T) => Scope,
  fn: (item: T) => void,
): void {
  const outer = current;
  try {
    for (const item of items) {
      current = scopeOf(item);
      fn(item);
    }
  } finally {
    current = outer;
  }
}

/** @internal Runs `fn` with its ops assigned to a composite, or to the outer composite if there is one. */
export const inComposite = <T>(name: string, decision: CastDecision, fn: () => T): T =>
  current?.composite === undefined
    ? inScope({ path: () => "", ...current, composite: name, decision }, fn)
    : fn();

/** @internal */
export const currentScope = (): Scope | undefined => current;
