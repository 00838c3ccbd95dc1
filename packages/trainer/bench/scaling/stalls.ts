import { closeSync, openSync, readSync } from "node:fs";

/** How long the event loop stood still, in milliseconds. */
export interface Stall {
  /** The longest time between two turns. */
  readonly longest: number;
  /** The longest of such times without what the thread waited for a core, which other threads had: what code of this process takes. */
  readonly own: number;
}

/** Measures stalls with a timer of a millisecond. Linux tells how long the thread waited for a core. */
export class StallMeter {
  readonly #file = openSync("/proc/thread-self/schedstat", "r");
  readonly #text = new Uint8Array(64);
  readonly #timer = setInterval(() => this.#tick(), 1);
  #last = this.#now();
  #longest = 0;
  #own = 0;

  /** Ends the measurement. */
  stop(): Stall {
    clearInterval(this.#timer);
    this.#tick();
    closeSync(this.#file);
    return { longest: this.#longest, own: this.#own };
  }

  #tick(): void {
    const now = this.#now();
    const stall = Math.max(0, now.time - this.#last.time - 1);
    this.#longest = Math.max(this.#longest, stall);
    this.#own = Math.max(this.#own, stall - (now.waited - this.#last.waited));
    this.#last = now;
  }

  /** The time, and how long this thread has waited for a core. */
  #now(): { readonly time: number; readonly waited: number } {
    const length = readSync(this.#file, this.#text, 0, this.#text.length, 0);
    const [, nanoseconds] = new TextDecoder().decode(this.#text.subarray(0, length)).split(" ");
    return { time: performance.now(), waited: Number(nanoseconds) / 1e6 };
  }
}
