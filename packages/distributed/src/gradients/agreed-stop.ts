/**
 * Steps from the one in whose exchange ranks learn of a stop to the last one. A runtime records at most as many steps ahead of one that has
 * not ended, so no rank has recorded further by then.
 */
const stepsAhead = 4;

/** What ranks send with a step to agree on their last one. */
export interface StopRequest {
  /** 1 where this rank has been told to stop. */
  readonly wanted: 0 | 1;
  /** Takes what ranks have agreed on: whether any of them was told to stop. */
  agreed(isWanted: boolean): void;
}

/** Lets all ranks stop after the same step, some steps after one of them was told to. */
export class AgreedStop {
  /** Aborted when the last step is recorded. */
  readonly signal: AbortSignal;
  readonly #wanted: AbortSignal | undefined;
  readonly #controller = new AbortController();
  #recorded = 0;
  #last: number | undefined;

  constructor(wanted: AbortSignal | undefined) {
    this.#wanted = wanted;
    this.signal = this.#controller.signal;
  }

  /** Counts a step that is recorded. */
  record(): StopRequest {
    const step = ++this.#recorded;
    if (step === this.#last) this.#controller.abort();
    const isWanted = (): boolean => this.#wanted?.aborted ?? false;
    return {
      get wanted() {
        return isWanted() ? 1 : 0;
      },
      agreed: (isAgreed) => {
        if (isAgreed) this.#stopAfter(step + stepsAhead);
      },
    };
  }

  #stopAfter(last: number): void {
    if (this.#last !== undefined) return;
    if (this.#recorded >= last)
      throw new RangeError(
        `ranks agree to stop after exchange ${last}, and this one has recorded ${this.#recorded}: record at most ${stepsAhead} steps ahead`,
      );
    this.#last = last;
  }
}
