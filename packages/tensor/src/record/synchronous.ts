/** What a callback returned, unless that is a promise: what it would do after its first `await` could not be recorded. */
export function requireSynchronous<T>(caller: string, result: T): T {
  if (
    typeof result === "object" &&
    result !== null &&
    "then" in result &&
    typeof result.then === "function"
  )
    throw new TypeError(
      `${caller}() takes a synchronous callback, and this one returned a promise: read results after the step`,
    );
  return result;
}
