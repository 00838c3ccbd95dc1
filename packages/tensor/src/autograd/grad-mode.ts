import { type AtOnce, requireSynchronous } from "../record/synchronous.js";

let isEnabled = true;

/** Whether ops are recorded for differentiation. */
export const isGradEnabled = (): boolean => isEnabled;

/**
 * Runs `fn` without recording ops for differentiation, as torch.no_grad does.
 * @throws TypeError where `fn` returns a promise: ops after its first `await` would be recorded
 */
export const noGrad = <T>(fn: () => T & AtOnce<T>): T =>
  withGradMode(false, () => requireSynchronous<T>("noGrad", fn()));

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
