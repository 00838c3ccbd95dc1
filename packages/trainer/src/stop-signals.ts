const exitCodes = { SIGHUP: 129, SIGINT: 130, SIGTERM: 143 } as const;

/** As the shell has it for SIGPIPE, by which programs end that write to a pipe without a reader. */
export const closedPipeCode = 141;

/** What listens for signals. */
export interface StopSignals {
  /** Fires with the first signal: for the option `signal` of `train()`. */
  readonly signal: AbortSignal;
  /**
   * 129 after SIGHUP, 130 after SIGINT, 143 after SIGTERM, 141 where nobody reads what the program writes any more; undefined
   * where none of it came.
   */
  exitCode(): number | undefined;
  /** Stops listening. */
  dispose(): void;
}

/** Which signals stop a run. */
export interface StopSignalOptions {
  /**
   * Milliseconds in which signals count as one: npm passes on a terminal's Ctrl-C, which has reached this process too.
   * Default 500.
   */
  readonly echo?: number;
}

let listening = 0;

/** Whether something of this process saves when nobody reads its output any more, and so must not be ended before. */
export const isStopAwaited = (): boolean => listening > 0;

/** Whether an error of stdout or stderr says that their reader is gone: `… | head`, or a terminal that was closed. */
export const isClosedPipe = (error: NodeJS.ErrnoException): boolean =>
  error.code === "EPIPE" || error.code === "EIO";

/**
 * Listens for SIGINT, SIGTERM and SIGHUP, and for a reader of stdout or stderr that goes away (`… | head`). The first is for the
 * program to end in order: `train()` saves, after the step that is under way. A second signal ends the process at
 * once; checkpoints appear whole or not at all, so it spoils none.
 */
export function stopSignals({ echo = 500 }: StopSignalOptions = {}): StopSignals {
  const controller = new AbortController();
  let code: number | undefined;
  let receivedAt = 0;
  const stop = (exitCode: number): void => {
    receivedAt = performance.now();
    code = exitCode;
    controller.abort();
  };
  const removals = Object.entries(exitCodes).map(([signal, exitCode]) => {
    const listener = (): void => {
      if (!controller.signal.aborted) stop(exitCode);
      else if (performance.now() - receivedAt > echo) process.exit(exitCode);
    };
    process.on(signal, listener);
    return () => process.off(signal, listener);
  });
  // Each further write fails as well: that is no second wish to stop.
  const onError = (error: NodeJS.ErrnoException): void => {
    if (!isClosedPipe(error)) throw error;
    if (!controller.signal.aborted) stop(closedPipeCode);
  };
  for (const stream of [process.stdout, process.stderr]) stream.on("error", onError);
  listening++;
  let isListening = true;
  return {
    signal: controller.signal,
    exitCode: () => code,
    dispose: () => {
      if (!isListening) return;
      isListening = false;
      listening--;
      for (const remove of removals) remove();
      for (const stream of [process.stdout, process.stderr]) stream.off("error", onError);
    },
  };
}
