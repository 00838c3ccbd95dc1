import { requireKinds } from "./option-kinds.js";

const exitCodes = { SIGHUP: 129, SIGINT: 130, SIGTERM: 143 } as const;

/** The shell's exit code for SIGPIPE, which ends programs that write to a pipe without a reader. */
export const closedPipeCode = 141;

/** A listener for signals. */
export interface StopSignals {
  /** Fires with the first signal: for the option `signal` of `train()`. */
  readonly signal: AbortSignal;
  /**
   * 129 after SIGHUP, 130 after SIGINT, 143 after SIGTERM, 141 where the reader of the program's output is gone; undefined where
   * none of these happened.
   */
  exitCode(): number | undefined;
  /** Stops listening. */
  dispose(): void;
}

/** Options of listening for signals. */
export interface StopSignalOptions {
  /**
   * Milliseconds in which signals count as one: npm forwards a terminal's Ctrl-C, which also reaches this process directly.
   * Default 500.
   */
  readonly echo?: number;
}

let listening = 0;

/**
 * Whether a listener of this process still saves after the reader of its output is gone, so that the process must not end
 * before.
 */
export const isStopAwaited = (): boolean => listening > 0;

/** Whether an error of stdout or stderr means that their reader is gone: `… | head`, or a closed terminal. */
export const isClosedPipe = (error: NodeJS.ErrnoException): boolean =>
  error.code === "EPIPE" || error.code === "EIO";

/**
 * Listens for SIGINT, SIGTERM and SIGHUP, and for a closed reader of stdout or stderr (`… | head`). After the first signal the
 * program ends in order: `train()` finishes the current step and saves. A second signal ends the process at once; checkpoints
 * appear whole or not at all, so none is damaged.
 */
export function stopSignals(options: StopSignalOptions = {}): StopSignals {
  requireKinds("stopSignals()", options, { echo: "any" });
  const { echo = 500 } = options;
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
  // Later writes fail as well, and do not count as a second signal.
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
