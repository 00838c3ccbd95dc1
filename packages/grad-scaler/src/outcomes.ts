import { ScaleCollapseError } from "./errors.js";
import type { StepOutcome } from "./step-outcome.js";

/** Outcomes as they become known. `return()` ends the stream, also while a `next()` waits. */
export interface OutcomeStream extends AsyncIterableIterator<StepOutcome> {
  return(): Promise<IteratorResult<StepOutcome>>;
}

/** Most outcomes that are kept for a `drain()`. */
const KEPT = 65_536;

/** The outcomes that the host has read, for one drain and any number of independent streams. */
export class OutcomeLog {
  #entries: (StepOutcome | Error)[] = [];
  /** Position of the first kept entry, counted from the first ever. */
  #first = 0;
  #drained = 0;
  #wake: () => void = () => {};
  #changed: Promise<void> = Promise.resolve();

  constructor() {
    this.#renew();
  }

  /** Adds an outcome, or an error that ends the streams when they reach it. */
  append(entry: StepOutcome | Error): void {
    this.#entries.push(entry);
    if (this.#entries.length >= 2 * KEPT) {
      this.#entries.splice(0, KEPT);
      this.#first += KEPT;
    }
    this.#notify();
  }

  /**
   * The outcomes since the last call.
   *
   * @throws ScaleCollapseError with the outcomes up to the collapse; the next call continues after it.
   */
  take(): readonly StepOutcome[] {
    const outcomes: StepOutcome[] = [];
    for (;;) {
      const next = this.#at(this.#drained);
      if (next === undefined) return outcomes;
      this.#drained = next.position + 1;
      if (!(next.entry instanceof Error)) outcomes.push(next.entry);
      else if (next.entry instanceof ScaleCollapseError) {
        const collapse = outcomes.at(-1) ?? (next.entry.outcomes[0] as StepOutcome);
        throw new ScaleCollapseError(collapse, next.entry, outcomes);
      }
    }
  }

  /** A stream that starts with the first outcome which no {@link take} has returned. */
  stream(): OutcomeStream {
    let position = this.#drained;
    let ended = false;
    const end = { done: true, value: undefined } as const;
    const next = async (): Promise<IteratorResult<StepOutcome>> => {
      while (!ended) {
        const found = this.#at(position);
        if (found === undefined) {
          await this.#changed;
          continue;
        }
        position = found.position + 1;
        if (!(found.entry instanceof Error)) return { done: false, value: found.entry };
        ended = true;
        throw found.entry;
      }
      return end;
    };
    const stream: OutcomeStream = {
      next,
      return: async () => {
        ended = true;
        this.#notify();
        return end;
      },
      [Symbol.asyncIterator]: () => stream,
    };
    return stream;
  }

  /** The entry at a position, or the oldest kept one with the number of lost outcomes. */
  #at(wanted: number): { position: number; entry: StepOutcome | Error } | undefined {
    const position = Math.max(wanted, this.#first);
    const entry = this.#entries[position - this.#first];
    if (entry === undefined) return undefined;
    if (position === wanted || entry instanceof Error) return { position, entry };
    return {
      position,
      entry: { ...entry, lostBefore: entry.lostBefore + position - wanted },
    };
  }

  #notify(): void {
    const wake = this.#wake;
    this.#renew();
    wake();
  }

  #renew(): void {
    this.#changed = new Promise((resolve) => {
      this.#wake = resolve;
    });
  }
}
