import { OptimizerStateError } from "./errors.js";

/** Throws unless `params` is a result of `flatten()`, for example for parameters as torch takes them. */
export function requireFlat(
  name: string,
  params: { readonly segments?: unknown } | null | undefined,
): void {
  if (!Array.isArray(params?.segments))
    throw new TypeError(
      `${name} takes flat parameters, or groups of them: pass flatten(model.parameters()), or [{ params: flatten(…), …options }]`,
    );
}

/** Throws unless `params` is a list of groups, each with flat parameters of its own, or what {@link requireFlat} takes. */
export function requireGroups(name: string, params: unknown): void {
  if (!Array.isArray(params)) requireFlat(name, params as { readonly segments?: unknown });
  else if (params.length === 0)
    throw new TypeError(
      `${name} takes at least one group of parameters, and the list is empty: pass flatten(model.parameters()), or [{ params: flatten(…), …options }]`,
    );
  else for (const group of params) requireFlat(name, group?.params);
}

/** Throws unless `options` is an object with options by name. */
export function requireOptions(name: string, options: unknown): void {
  if (typeof options !== "object" || options === null || Array.isArray(options))
    throw new TypeError(
      `${name} takes options in an object, not ${shown(options)}: pass { lr: … } and the like`,
    );
}

/** Throws unless `optimizer` is one of this package, or wraps one. */
export function requireOptimizer(name: string, optimizer: unknown): void {
  let inner = optimizer;
  while (typeof inner === "object" && inner !== null) {
    if ("keptGroups" in inner) return;
    inner = "optimizer" in inner ? inner.optimizer : undefined;
  }
  throw new TypeError(
    `${name} takes an optimizer first: pass one of this package, such as new AdamW(…), or what wraps one`,
  );
}

/** Throws unless `target` runs launches. */
export function requireTarget(
  name: string,
  target: { readonly launch?: unknown } | null | undefined,
): void {
  if (typeof target?.launch !== "function")
    throw new TypeError(
      `${name} takes a target first: pass runtime.target, or deviceTarget(device) or cpuTarget()`,
    );
}

/** A value as errors name it: the string "0.5" looks like no number. */
export function shown(value: unknown): string {
  if (typeof value === "string") return JSON.stringify(value);
  if (typeof value === "function") return "a function";
  if (Array.isArray(value)) return `[${value.map(shown).join(", ")}]`;
  if (value instanceof Promise) return "a promise";
  return typeof value === "object" && value !== null ? "an object" : String(value);
}

/** Throws a TypeError unless `value` is a boolean: the string "false" of a command line would count as true. */
export function requireBoolean(option: string, value: unknown): void {
  if (typeof value !== "boolean")
    throw new TypeError(`${option} is ${shown(value)}: it must be true or false`);
}

/** Throws unless `value` is a number above 0, or Infinity. */
export function requirePositive(option: string, value: unknown): void {
  if (typeof value !== "number" || !(value > 0))
    throw new RangeError(`${option} is ${shown(value)}: it must be a positive number`);
}

/** Throws for arguments of a method that has none, such as torch's `set_to_none`. */
export function requireNone(call: string, given: readonly unknown[]): void {
  if (given.some((each) => each !== undefined))
    throw new TypeError(
      `${call} takes no arguments, and was given ${shown(given[0])}: leave it out`,
    );
}

/** Throws unless `value` is a finite number with `least ≤ value ≤ most`, for example for the string "0.1" of a command line. */
export function requireNumber(
  option: string,
  value: number,
  least: number,
  most: number = Number.MAX_VALUE,
): void {
  if (typeof value !== "number" || !(value >= least && value <= most))
    throw new RangeError(
      `${option} is ${shown(value)}: it must be a number ${most === Number.MAX_VALUE ? `of at least ${least}` : `from ${least} to ${most}`}`,
    );
}

/** Refuses unknown options: a misspelt one would silently keep its default. */
export function requireKnown(what: string, options: object, known: object): void {
  requireNames(what, options, Object.keys(known));
}

/** {@link requireKnown} by a list of names. */
export function requireNames(what: string, options: object, names: readonly string[]): void {
  const unknown = Object.keys(options).find((name) => !names.includes(name));
  if (unknown !== undefined)
    throw new RangeError(
      `${what} has no option ${JSON.stringify(unknown)}: it has ${names.join(", ")}`,
    );
}

export function requireOneOf(option: string, value: string, choices: readonly string[]): void {
  if (!choices.includes(value))
    throw new RangeError(`${option} is ${shown(value)}: choose one of ${choices.join(", ")}`);
}

/** Refuses a promise, whose `await` was forgotten, and what lacks members of a state of `what`. */
export function requireState(what: string, state: unknown, members: readonly string[]): void {
  const isObject = typeof state === "object" && state !== null;
  if (isObject && "then" in state)
    throw new OptimizerStateError(
      "the state is a promise: write loadStateDict(await optimizer.stateDict())",
    );
  if (!isObject)
    throw new OptimizerStateError(`the state is ${shown(state)}: load what stateDict() gave`);
  const missing = members.find((name) => !(name in state));
  if (missing !== undefined)
    throw new OptimizerStateError(
      `the state has no member ${missing}, so it is no state of ${what}: load what stateDict() of ${what} gave`,
    );
}

export function requireSeed(seed: number): void {
  if (!Number.isSafeInteger(seed) || seed < 0)
    throw new RangeError(`seed is ${shown(seed)}: it must be a whole number from 0 to 2^53 - 1`);
}

export function requireSame(group: number, option: string, saved: string, own: string): void {
  if (saved !== own)
    throw new OptimizerStateError(
      `the state of group ${group} was saved with ${option} "${saved}", but the optimizer has "${own}": make it as the one that was saved`,
    );
}
