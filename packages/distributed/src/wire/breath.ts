/** Elements that are processed in about a millisecond, in a few where other work has the caches. */
const most = 1 << 18;

/** Lets the event loop run between the pieces of long work on the host. */
export class Breath {
  #elements = 0;

  /** Waits for a turn of the event loop where many elements were processed since the last one. */
  async after(elements: number): Promise<void> {
    this.#elements += elements;
    if (this.#elements < most) return;
    this.#elements = 0;
    // Only Node has setImmediate; other hosts use timers.
    const { setImmediate: soon = setTimeout } = globalThis as {
      setImmediate?: (f: () => void) => unknown;
    };
    await new Promise<void>((resolve) => soon(resolve));
  }
}
