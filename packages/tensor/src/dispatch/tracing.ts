let open = 0;

/** Calls `fn`, in which {@link isTracing} is true. */
export function whileTracing<T>(fn: () => T): T {
  open++;
  try {
    return fn();
  } finally {
    open--;
  }
}

/** Whether the caller is inside `traceOps()`. */
export const isTracing = (): boolean => open > 0;
