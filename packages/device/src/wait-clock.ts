import type { Health } from "./health.js";

/** Observations kept for each amount of work. */
const remembered = 4;

// Dawn in Node polls without pause while a promise is pending, which starves a GPU that runs on the same cores.
const polls = "process" in globalThis && !("document" in globalThis);

/**
 * Waits for the device and sleeps through most of it. The time is guessed from earlier waits for a like amount of work:
 * the shortest of the last few, because a first dispatch that had to be compiled says nothing about the next.
 */
export class WaitClock {
  /** Units of work submitted so far, and those known to be done: one for each dispatch and each submit. */
  #submitted = 0;
  #done = 0;
  /** When the oldest unfinished work was submitted, in ms. */
  #since = 0;
  readonly #history = new Map<number, number[]>();
  readonly #health: Pick<Health, "lost">;

  constructor(health: Pick<Health, "lost">) {
    this.#health = health;
  }

  /** Tells that work was submitted; `total` counts all of it since the beginning. */
  submitted(total: number): void {
    if (this.#done === this.#submitted) this.#since = performance.now();
    this.#submitted = total;
  }

  /** Awaits `finish`, which resolves when all work submitted until now is done. */
  async wait(finish: () => Promise<unknown>): Promise<void> {
    const mark = this.#submitted;
    const since = this.#since;
    const size = Math.ceil(Math.log2(mark - this.#done + 1));
    const history = this.#history.get(size) ?? [];
    if (polls && history.length > 1)
      await this.#sleep(since + 0.85 * Math.min(...history) - performance.now());
    const asked = performance.now();
    await finish();
    const finished = performance.now();
    // Done at once: the sleep was too long by an unknown time.
    const wasLate = finished - asked < 0.3;
    history.unshift((finished - since) * (wasLate ? 0.8 : 1));
    history.length = Math.min(history.length, remembered);
    this.#history.set(size, history);
    if (mark > this.#done) {
      this.#done = mark;
      this.#since = finished;
    }
  }

  async #sleep(milliseconds: number): Promise<void> {
    if (milliseconds < 1) return;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const slept = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, milliseconds);
    });
    await Promise.race([slept, this.#health.lost]);
    clearTimeout(timer);
  }
}
