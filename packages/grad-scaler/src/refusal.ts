import { type ScalerMistake, ScalerStateError } from "./errors.js";
import type { ScaledOptimizer } from "./primitives.js";

/** Refuses a call. */
export function refuse(mistake: ScalerMistake, message: string): never {
  throw new ScalerStateError(mistake, message);
}

/** Refuses a value that is out of range. */
export function demand(name: string, value: unknown, holds: boolean, what: string): void {
  if (!holds) throw new RangeError(`${name} is ${value}: it must be ${what}.`);
}

/** Refuses what is neither true nor false: the text "false" would count as true. */
export function demandFlag(name: string, value: unknown): void {
  if (typeof value === "boolean") return;
  const shown = typeof value === "string" ? JSON.stringify(value) : value;
  demand(name, shown, false, "true or false");
}

/** Refuses what is no whole number of a range. */
export function demandInteger(
  name: string,
  value: number,
  least: number,
  most: number = Number.POSITIVE_INFINITY,
): void {
  const holds = Number.isInteger(value) && value >= least && value <= most;
  const range = most < Number.POSITIVE_INFINITY ? `to ${most}` : "on";
  demand(name, value, holds, `a whole number from ${least} ${range}`);
}

/** Refuses options that a call does not have: misspelt ones would be ignored. */
export function demandOptions(call: string, options: object, known: readonly string[]): void {
  for (const name of Object.keys(options))
    if (!known.includes(name))
      throw new TypeError(`${call} has no option ${name}: pass any of ${known.join(", ")}`);
}

/**
 * Returns the result of a callback, unless some of it is still to run: then the step would go on without it.
 *
 * @throws TypeError for a promise, and for a generator, of which nothing has run.
 */
export function demandDone<R>(call: string, result: R): R {
  const object = Object(result) as object;
  // Proxies may throw where a member is read that they do not have.
  const isDone =
    "then" in object ? typeof object.then !== "function" : !("next" in object && "throw" in object);
  if (isDone) return result;
  // The callback is refused as a whole: its promise must not also surface as an unhandled rejection.
  if (result instanceof Promise) result.catch(() => {});
  throw new TypeError(
    `${call} takes a synchronous function, and this one returned a promise or generator: it would clip after the step.`,
  );
}

/** Refuses a name that nothing has. */
export function demandKnown(what: string, name: string, known: readonly string[]): void {
  if (!known.includes(name))
    throw new RangeError(`"${name}" is no ${what}: choose one of ${known.join(", ")}.`);
}

/** The name of an optimizer in errors: its parameters, if it lists them. */
export function nameOf<B>(optimizer: ScaledOptimizer<B>): string {
  const names = [...(optimizer.parameterNames?.() ?? [])];
  if (names.length === 0) return "this optimizer";
  const shown = names.slice(0, 3).map((name) => `"${name}"`);
  const more = names.length > 3 ? ` and ${names.length - 3} more` : "";
  return `the optimizer of ${shown.join(", ")}${more}`;
}
