/** Where an op belongs, for those who want to know where a number came from. */
export interface Scope {
  /** Path of the module whose `forward` runs, or ran. */
  readonly path: () => string;
  /** The function of ops that applies them, where one does that autocast takes for one op: the outermost. */
  readonly composite?: string;
  /** The op whose gradient is being computed, in backward passes. */
  readonly backwardOf?: string;
}

let current: Scope | undefined;

/** Runs `fn`, of whose ops is then known that they belong to a module: what `Module` of `@halfstep/nn` does around `forward`. */
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

/** @internal Runs `fn`, whose ops are those of a composite, or of the one that it is in. */
export const inComposite = <T>(name: string, fn: () => T): T =>
  current?.composite === undefined
    ? inScope({ path: () => "", ...current, composite: name }, fn)
    : fn();

/** @internal */
export const currentScope = (): Scope | undefined => current;
