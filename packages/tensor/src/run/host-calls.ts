import { HostOpError } from "../errors.js";
import type { HostOp } from "../record/host-op.js";

/** The call of the function of one host op, from the time at which its run is queued. */
export interface HostCall {
  /** Resolves when the function has ended or failed, or the call was dropped. */
  readonly ended: Promise<void>;
  /**
   * Calls the function behind those before.
   *
   * @param operands resolves when the operands have arrived.
   */
  begin(operands: Promise<void>, fn: () => Promise<void>): void;
  /** Ends the call without its function. */
  drop(): void;
}

/** Calls the functions of host ops of one runner: one at a time, in the order in which they begin; none after a failure. */
export class HostCalls {
  #failure: Error | undefined;
  #last: Promise<unknown> = Promise.resolve();
  readonly #open: Set<HostCall> = new Set();

  /** The first error: of a function, or of work behind one. */
  get failure(): Error | undefined {
    return this.#failure;
  }

  /** Whether a run waits for a function, or will. */
  get isBusy(): boolean {
    return this.#open.size > 0;
  }

  /** Resolves when all calls have ended. */
  async ended(): Promise<void> {
    while (this.#open.size > 0) await Promise.all([...this.#open].map(({ ended }) => ended));
  }

  /** Records an error, after which no function is called. */
  fail(reason: unknown): void {
    this.#failure ??= reason instanceof Error ? reason : new Error(String(reason));
  }

  /** Opens the call of a host op. */
  open(op: HostOp): HostCall {
    let end = (): void => {};
    const ended = new Promise<void>((resolve) => {
      end = resolve;
    });
    const drop = (): void => {
      this.#open.delete(call);
      end();
    };
    const call: HostCall = {
      ended,
      drop,
      begin: (operands, fn) => {
        this.#last = this.#call(op, operands, fn, this.#last).then(drop);
      },
    };
    this.#open.add(call);
    return call;
  }

  async #call(
    op: HostOp,
    operands: Promise<void>,
    fn: () => Promise<void>,
    before: Promise<unknown>,
  ): Promise<void> {
    try {
      await operands;
    } catch (reason) {
      // The device was lost.
      this.fail(reason);
    }
    await before;
    if (this.#failure) return;
    try {
      await fn();
    } catch (reason) {
      this.fail(new HostOpError(op.name, reason, { isStateChanged: op.isFinal }));
    }
  }
}
