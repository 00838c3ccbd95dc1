/** A turn of the event loop, so that signals and timers are served between steps. */
export const macrotask = (): Promise<void> =>
  new Promise((resolve) => {
    // Only Node has setImmediate; elsewhere timers must do.
    const { setImmediate: soon = setTimeout } = globalThis as {
      setImmediate?: (f: () => void) => unknown;
    };
    soon(resolve);
  });
