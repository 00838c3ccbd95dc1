/** Waits for one turn of the event loop, so that signals and timers are handled between steps. */
export const macrotask = (): Promise<void> =>
  new Promise((resolve) => {
    // Only Node has setImmediate; other hosts use timers.
    const { setImmediate: soon = setTimeout } = globalThis as {
      setImmediate?: (f: () => void) => unknown;
    };
    soon(resolve);
  });
