/** What {@link untilAborted} gives where a signal has ended the wait. */
export const aborted: unique symbol = Symbol("aborted");

/** Milliseconds that a wait goes on after the signal: what is about to come may still count. */
const grace = 100;

/**
 * Awaits work of others, such as a loader, until a signal fires. After that the errors of the work do not count: it may obey the same
 * signal, as `fetch(url, { signal })` does. Without a signal it is awaited whatever happens.
 */
export async function untilAborted<T>(
  work: PromiseLike<T>,
  signal: AbortSignal | undefined,
): Promise<T | typeof aborted> {
  if (!signal) return work;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let giveUp = (): void => {};
  const over = new Promise<typeof aborted>((resolve) => {
    giveUp = () => {
      timer = setTimeout(resolve, grace, aborted);
    };
  });
  if (signal.aborted) giveUp();
  else signal.addEventListener("abort", giveUp, { once: true });
  try {
    // An error that comes when the race is over counts as handled.
    return await Promise.race([work, over]);
  } catch (error) {
    if (signal.aborted) return aborted;
    throw error;
  } finally {
    signal.removeEventListener("abort", giveUp);
    clearTimeout(timer);
  }
}
