/**
 * What callbacks that report have given: nothing, or promises. Training does not wait for each promise; it fails with the reason of the
 * first that rejects.
 */
export class Reports {
  readonly #pending = new Set<Promise<void>>();
  #failure: { readonly reason: unknown } | undefined;

  /**
   * Takes what a callback gave.
   * @param onFailure called where it is a promise that rejects
   */
  add(result: unknown, onFailure: () => void = () => {}): void {
    if (!isPromise(result)) return;
    const settled = Promise.resolve(result)
      .then(undefined, (reason: unknown) => {
        this.#failure ??= { reason };
        onFailure();
      })
      .then(() => {
        this.#pending.delete(settled);
      });
    this.#pending.add(settled);
  }

  /** Throws the first failure so far. */
  check(): void {
    if (this.#failure) throw this.#failure.reason;
  }

  /** Waits for all promises, and throws the first failure. */
  async settled(): Promise<void> {
    while (this.#pending.size > 0) await Promise.all(this.#pending);
    this.check();
  }
}

/** The listeners of something, as one function. */
export type Listener<Told extends readonly unknown[]> = (...told: Told) => unknown;

/**
 * Combines listeners. A listener that fails gets nothing more; the others still get the rest when training reports after a failure.
 */
export function toldToAll<Told extends readonly unknown[]>(
  listeners: readonly (Listener<Told> | undefined)[],
  reports: Reports,
): Listener<Told> {
  const listening = new Set(listeners.filter((each) => each !== undefined));
  return (...told) => {
    const failures: unknown[] = [];
    for (const listener of listening)
      try {
        reports.add(listener(...told), () => listening.delete(listener));
      } catch (error) {
        listening.delete(listener);
        failures.push(error);
      }
    if (failures.length > 0) throw failures[0];
  };
}

/**
 * The value that a callback gave whose result is needed at once.
 * @throws TypeError for a promise, whose own rejection does not count then
 */
export function atOnce<T>(callback: string, value: T): T {
  if (!isPromise(value)) return value;
  Promise.resolve(value).catch(() => {});
  throw new TypeError(
    `${callback} gave a promise: it must be a synchronous function, because training goes on when it returns`,
  );
}

const isPromise = (value: unknown): value is PromiseLike<unknown> =>
  typeof value === "object" &&
  value !== null &&
  typeof (value as Partial<PromiseLike<unknown>>).then === "function";
