/** Work that waits, and whether it may be called when everything before it was. */
interface Waiting {
  work: () => void;
  isReady: boolean;
}

/**
 * Calls work that submits, writes or reads in the order in which it was given: at once, unless earlier work waits, for programs that
 * are being compiled or for a function of the host. The queue of the GPU itself keeps the order of what reaches it.
 */
export class SubmissionQueue {
  readonly #waiting: Waiting[] = [];
  readonly #fail: (error: unknown) => void;
  #isCalling = false;

  /** @param fail called with the errors of work that waited, and with reasons for which it cannot be called. */
  constructor(fail: (error: unknown) => void) {
    this.#fail = fail;
  }

  /** Whether work given now would wait. Work that is called may give more, which belongs to its own place. */
  get isHeld(): boolean {
    return this.#waiting.length > 0 && !this.#isCalling;
  }

  /** Whether it is calling work that waited. */
  get isCalling(): boolean {
    return this.#isCalling;
  }

  /**
   * Calls `work` after all work that was given before.
   * @param ready if given, the work waits for it, too, and later work waits behind; where it rejects, the work is dropped.
   */
  add(work: () => void, ready?: Promise<unknown>): void {
    if (!ready && !this.isHeld) {
      work();
      return;
    }
    const waiting = { work, isReady: !ready };
    this.#waiting.push(waiting);
    if (ready) void this.#await(waiting, ready);
  }

  /** The result of `work`, which is called as by {@link add}. */
  result<T>(work: () => Promise<T>): Promise<T> {
    return new Promise((resolve) => this.add(() => resolve((async () => work())())));
  }

  /** Resolves when all work that was given before has been called. */
  called(): Promise<void> {
    return new Promise((resolve) => this.add(resolve));
  }

  /** Stops waiting: drops work whose programs are not compiled, and calls the rest. */
  release(): void {
    for (const waiting of this.#waiting) {
      if (!waiting.isReady) waiting.work = () => {};
      waiting.isReady = true;
    }
    this.#callReady();
  }

  async #await(waiting: Waiting, ready: Promise<unknown>): Promise<void> {
    try {
      await ready;
    } catch (reason) {
      waiting.work = () => this.#fail(reason);
    }
    waiting.isReady = true;
    this.#callReady();
  }

  #callReady(): void {
    while (this.#waiting[0]?.isReady) {
      const { work } = this.#waiting.shift() as Waiting;
      this.#isCalling = true;
      try {
        work();
      } catch (error) {
        this.#fail(error);
      } finally {
        this.#isCalling = false;
      }
    }
  }
}
