/** Returns the result of a callback. Throws where it is a promise: ops after the first `await` would run outside of the caller. */
export function requireSynchronous<T>(caller: string, result: T): T {
  if (
    typeof result === "object" &&
    result !== null &&
    "then" in result &&
    typeof result.then === "function"
  ) {
    // The callback is refused as a whole: its promise must not also surface as an unhandled rejection.
    if (result instanceof Promise) result.catch(() => {});
    throw new TypeError(
      `${caller}() takes a synchronous callback, and this one returned a promise: await outside of it`,
    );
  }
  return result;
}
