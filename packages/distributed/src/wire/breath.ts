/** Elements that take a few milliseconds on most machines. */
const most = 1 << 20;
/** Milliseconds of work after which the event loop runs on slower machines. Beside a wait for a GPU each turn costs up to a millisecond. */
const longest = 4;

/** Lets the event loop run between the pieces of long work on the host. */
export class Breath {
  #elements = 0;
  #since = performance.now();

  /** Work begins after a wait, in which the event loop ran. */
  begin(): void {
    this.#elements = 0;
    this.#since = performance.now();
  }

  /** Waits for a turn of the event loop where much work was done since the last one: `elements` of it just now. */
  async after(elements: number): Promise<void> {
    this.#elements += elements;
    if (this.#elements < most && performance.now() - this.#since < longest) return;
    // Only Node has setImmediate; other hosts use timers.
    const { setImmediate: soon = setTimeout } = globalThis as {
      setImmediate?: (f: () => void) => unknown;
    };
    await new Promise<void>((resolve) => soon(resolve));
    this.begin();
  }
}
