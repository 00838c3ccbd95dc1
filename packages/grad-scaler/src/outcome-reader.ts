import { ScaleCollapseError } from "./errors.js";
import type { OutcomeLog } from "./outcomes.js";
import { OUTCOME_RING, OUTCOME_WORDS } from "./primitives.js";
import type { StepOutcome, StepStatus } from "./step-outcome.js";

/** How often outcomes are read without being asked for: after this many steps, or this long after the first unread one. */
export interface OutcomeSchedule {
  readonly steps: number;
  readonly milliseconds: number;
}

/** What the host knows about an outcome before it has read it. */
export interface ExpectedOutcome {
  readonly step: number;
  /** Whether each optimizer was stepped, or only unscaled. */
  readonly stepped: readonly boolean[];
  /** True where one optimizer's overflow skips all. */
  readonly together: boolean;
  /** The floor of the scale; undefined where the scale does not change. */
  readonly floor: number | undefined;
}

/** Tags are exact in float32. */
const TAGS = 2 ** 24;

/** Reads the device's ring of outcomes into a log: never twice, never out of order, and nothing that was overwritten. */
export class OutcomeReader {
  readonly #read: () => Promise<Float32Array>;
  readonly #log: OutcomeLog;
  readonly #schedule: OutcomeSchedule | false;
  #pending: (ExpectedOutcome & { readonly serial: number })[] = [];
  #serial = 0;
  #lost = 0;
  #skips = 0;
  #collapsed = false;
  #reading: Promise<void> = Promise.resolve();
  #timer: ReturnType<typeof setTimeout> | undefined;
  #timerIsUrgent = false;

  constructor(
    read: () => Promise<Float32Array>,
    log: OutcomeLog,
    schedule: OutcomeSchedule | false,
  ) {
    this.#read = read;
    this.#log = log;
    this.#schedule = schedule;
  }

  /** Announces the next outcome of the device and returns its tag. */
  expect(outcome: ExpectedOutcome): number {
    this.#serial += 1;
    this.#pending.push({ ...outcome, serial: this.#serial });
    if (this.#pending.length > 2 * OUTCOME_RING) {
      this.#pending.splice(0, OUTCOME_RING);
      this.#lost += OUTCOME_RING;
    }
    this.#plan();
    return tagOf(this.#serial);
  }

  /** Takes back the newest announcement: its recording will never run. */
  forget(): void {
    this.#pending.pop();
    this.#serial -= 1;
  }

  /** Appends every outcome announced so far to the log. One read at a time; rejects where the device's read does. */
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
      const tag = tagOf(next.serial);
      const at = ((tag - 1) % OUTCOME_RING) * OUTCOME_WORDS;
      if (words[at] === tag) this.#append(next, words.subarray(at, at + OUTCOME_WORDS));
      else this.#lost += 1;
    }
  }

  #append(expected: ExpectedOutcome, words: Float32Array): void {
    const [, flags = 0, scaleBefore = 0, scaleAfter = 0] = words;
    const foundInf = flags !== 0;
    const optimizers = expected.stepped.map((stepped, index): StepStatus => {
      const overflowed = expected.together ? foundInf : (flags >> index) % 2 !== 0;
      return stepped && !overflowed ? "applied" : "skipped";
    });
    const outcome: StepOutcome = {
      step: expected.step,
      status: optimizers.includes("skipped") ? "skipped" : "applied",
      optimizers,
      foundInf,
      scaleBefore,
      scaleAfter,
      lostBefore: this.#lost,
    };
    this.#lost = 0;
    this.#log.append(outcome);
    this.#watch(outcome, expected.floor);
  }

  /** Reports the first overflow at the floor after a step without one. */
  #watch(outcome: StepOutcome, floor: number | undefined): void {
    if (!outcome.foundInf) {
      this.#skips = 0;
      this.#collapsed = false;
      return;
    }
    this.#skips += 1;
    if (this.#collapsed || floor === undefined || outcome.scaleBefore > floor) return;
    this.#collapsed = true;
    this.#log.append(new ScaleCollapseError(outcome, this.#skips));
  }

  #plan(): void {
    if (!this.#schedule) return;
    const urgent = this.#pending.length >= this.#schedule.steps;
    if (this.#timer !== undefined && (this.#timerIsUrgent || !urgent)) return;
    this.#cancel();
    this.#timerIsUrgent = urgent;
    // A failed read ends the streams, and the next drain() meets the failure itself.
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
