let isEnabled = true;

/** Whether ops are recorded for differentiation. */
export const isGradEnabled = (): boolean => isEnabled;

/** Runs `fn` without recording ops for differentiation, as torch.no_grad does. `fn` is synchronous. */
export const noGrad = <T>(fn: () => T): T => withGradMode(false, fn);

/** Runs `fn` with recording for differentiation switched on or off. */
export function withGradMode<T>(enabled: boolean, fn: () => T): T {
  const before = isEnabled;
  isEnabled = enabled;
  try {
    return fn();
  } finally {
    isEnabled = before;
  }
}
