import { ScaleCollapseError } from "./errors.js";
import type { OutcomeLog } from "./outcomes.js";
import { type Origin, OUTCOME_RING, OUTCOME_WORDS, type OutcomeWords } from "./primitives.js";
import {
  type ExpectedOutcome,
  hasOverflow,
  isAllZero,
  isCollapse,
  outcomeOf,
} from "./read-outcome.js";
import { demand } from "./refusal.js";
import type { OverflowCause, StepOutcome } from "./step-outcome.js";

/** How often outcomes are read automatically: after this many steps, or this long after the first unread one. */
export interface OutcomeSchedule {
  readonly steps: number;
  readonly milliseconds: number;
}

/** Tags are exact in float32. */
const TAGS = 2 ** 24;

interface Pending extends ExpectedOutcome {
  /** Number of its first record, counted from the scaler's first. */
  readonly serial: number;
}

/** Reads the device's ring of outcomes into a log: each record once, in order, without overwritten ones. */
export class OutcomeReader {
  readonly #read: () => Promise<Float32Array>;
  readonly #log: OutcomeLog;
  readonly #schedule: OutcomeSchedule | false;
  #pending: Pending[] = [];
  #serial = 1;
  #lost = 0;
  #overflowing: { readonly skips: number; readonly pass: OverflowCause["pass"] } | undefined;
  #collapsed = false;
  #reading: Promise<void> = Promise.resolve();
  #timer: ReturnType<typeof setTimeout> | undefined;
  #timerIsUrgent = false;

  constructor(
    read: () => Promise<Float32Array>,
    log: OutcomeLog,
    schedule: OutcomeSchedule | false,
  ) {
    if (schedule) {
      const { steps, milliseconds } = schedule;
      demand(
        "outcomeSchedule.steps",
        steps,
        Number.isInteger(steps) && steps > 0,
        "a whole number from 1 on, and outcomeSchedule: false reads none",
      );
      demand("outcomeSchedule.milliseconds", milliseconds, milliseconds >= 0, "0 or more");
    }
    this.#read = read;
    this.#log = log;
    this.#schedule = schedule;
  }

  /** Announces the next outcome of the device and returns the tags of its records, one for each loss. */
  expect(outcome: ExpectedOutcome): readonly number[] {
    const serial = this.#serial;
    this.#serial += outcome.records.length;
    this.#pending.push({ ...outcome, serial });
    if (this.#pending.length > 2 * OUTCOME_RING) {
      this.#pending.splice(0, OUTCOME_RING);
      this.#lost += OUTCOME_RING;
    }
    this.#plan();
    return outcome.records.map((_, i) => tagOf(serial + i));
  }

  /** Withdraws the latest announcement, whose recording was dropped. */
  forget(): void {
    const forgotten = this.#pending.pop();
    if (forgotten) this.#serial = forgotten.serial;
  }

  /** Appends every announced outcome to the log. One read runs at a time; it rejects if the device's read does. */
  read(): Promise<void> {
    const run = (): Promise<void> => this.#readOnce();
    const reading = this.#reading.then(run, run);
    this.#reading = reading;
    return reading;
  }

  async #readOnce(): Promise<void> {
    this.#cancel();
    const last = this.#pending.at(-1)?.serial;
    if (last === undefined) return;
    let words: Float32Array;
    try {
      words = await this.#read();
    } catch (error) {
      this.#log.append(error instanceof Error ? error : new Error(String(error)));
      throw error;
    }
    for (let next = this.#pending[0]; next && next.serial <= last; next = this.#pending[0]) {
      this.#pending.shift();
      const { serial } = next;
      const records = next.records.map((_, i) => recordAt(words, tagOf(serial + i)));
      if (!records.every((record) => record !== undefined)) this.#lost += 1;
      else this.#append(next, records, next.findOrigin && (await foundOrigin(next, records)));
    }
  }

  #append(
    expected: ExpectedOutcome,
    records: readonly OutcomeWords[],
    origin: Origin | undefined,
  ): void {
    const outcome = outcomeOf(expected, records, { lostBefore: this.#lost, origin });
    this.#lost = 0;
    this.#log.append(outcome);
    this.#watch(outcome, isCollapse(expected, records));
  }

  /** Reports the first overflow at the floor after a step without one. */
  #watch(outcome: StepOutcome, collapses: boolean): void {
    if (outcome.cause === undefined) {
      this.#overflowing = undefined;
      this.#collapsed = false;
      return;
    }
    const { skips, pass } = this.#overflowing ?? { skips: 0, pass: outcome.cause.pass };
    this.#overflowing = { skips: skips + 1, pass };
    if (this.#collapsed || !collapses) return;
    this.#collapsed = true;
    this.#log.append(new ScaleCollapseError(outcome, this.#overflowing));
  }

  #plan(): void {
    if (!this.#schedule) return;
    const urgent = this.#pending.length >= this.#schedule.steps;
    if (this.#timer !== undefined && (this.#timerIsUrgent || !urgent)) return;
    this.#cancel();
    this.#timerIsUrgent = urgent;
    // A failed read ends the streams, and the next drain() rejects with the failure.
    const read = (): void => void this.read().catch(() => {});
    // Even an urgent read waits for a macrotask: update() may be running inside a recorded step, where reading throws.
    this.#timer = setTimeout(read, urgent ? 0 : this.#schedule.milliseconds);
    // In Node a timer must not keep a finished program alive.
    (this.#timer as { unref?(): void }).unref?.();
  }

  #cancel(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }
}

const tagOf = (serial: number): number => ((serial - 1) % TAGS) + 1;

/** The origin of an overflow or an underflow. If the search fails, the outcome is kept without it. */
async function foundOrigin(
  { findOrigin }: ExpectedOutcome,
  records: readonly OutcomeWords[],
): Promise<Origin | undefined> {
  try {
    return await findOrigin?.(hasOverflow(records), isAllZero(records));
  } catch {
    return undefined;
  }
}

/** The record of this tag, if the ring still holds it. */
function recordAt(words: Float32Array, tag: number): OutcomeWords | undefined {
  const at = ((tag - 1) % OUTCOME_RING) * OUTCOME_WORDS;
  if (words[at] !== tag) return undefined;
  return [...words.subarray(at, at + OUTCOME_WORDS)] as unknown as OutcomeWords;
}
