import type { Synchronous } from "@halfstep/autocast";

/** `unknown` for a result that a callback has when it returns; for promises and generators a type whose member says what to do. */
export type AtOnce<T> = Synchronous<
  T,
  "the callback must be synchronous: call await outside of it, and no async function inside"
>;

/**
 * Returns the result of a callback.
 *
 * @throws TypeError where it is a promise or a generator: ops after the first `await`, or all ops, would run outside of the caller.
 */
export function requireSynchronous<T>(caller: string, result: T): T {
  const isPromise = hasMethod(result, "then");
  if (!isPromise && !(hasMethod(result, "next") && hasMethod(result, "throw"))) return result;
  // The callback is refused as a whole: its promise must not also surface as an unhandled rejection.
  if (result instanceof Promise) result.catch(() => {});
  throw new TypeError(
    `${caller}() takes a synchronous callback, and this one returned a ${isPromise ? "promise: await outside of it" : "generator: run it inside"}`,
  );
}

// Proxies may throw where a member is read that they do not have.
const hasMethod = (value: unknown, name: string): boolean =>
  typeof value === "object" &&
  value !== null &&
  name in value &&
  typeof (value as Record<string, unknown>)[name] === "function";
