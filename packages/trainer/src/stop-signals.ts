const exitCodes = { SIGINT: 130, SIGTERM: 143 } as const;

/** What listens for signals. */
export interface StopSignals {
  /** Fires with the first signal: for the option `signal` of `train()`. */
  readonly signal: AbortSignal;
  /** 130 after SIGINT, 143 after SIGTERM; undefined where none came. */
  exitCode(): number | undefined;
  /** Stops listening. */
  dispose(): void;
}

export interface StopSignalOptions {
  /**
   * Milliseconds in which signals count as one: npm passes on a terminal's Ctrl-C, which has reached this process too.
   * Default 500.
   */
  readonly echo?: number;
}

/**
 * Listens for SIGINT and SIGTERM. The first is for the program to end in order: `train()` saves, after the step that is under
 * way. A second one ends the process at once; checkpoints appear whole or not at all, so it spoils none.
 */
export function stopSignals({ echo = 500 }: StopSignalOptions = {}): StopSignals {
  const controller = new AbortController();
  let code: number | undefined;
  let receivedAt = 0;
  const listeners = Object.entries(exitCodes).map(([signal, exitCode]) => {
    const listener = (): void => {
      if (controller.signal.aborted) {
        if (performance.now() - receivedAt > echo) process.exit(exitCode);
        return;
      }
      receivedAt = performance.now();
      code = exitCode;
      controller.abort();
    };
    process.on(signal, listener);
    return () => process.off(signal, listener);
  });
  return {
    signal: controller.signal,
    exitCode: () => code,
    dispose: () => {
      for (const remove of listeners) remove();
    },
  };
}
