import { RecordingError } from "../errors.js";
import type { Memory } from "../record/storage.js";
import type { PlanRun } from "./runner.js";

/** The operations of a runner for one run of a plan. */
export interface RunSteps {
  /** Number of launches of the plan. */
  readonly launches: number;
  readonly memoryOf: PlanRun["memoryOf"];
  /** Runs the launches from one position up to a later one. */
  runRange(from: number, to: number): void;
  /** Runs the launches from a position on, and returns the memory of kept values. */
  finish(from: number): readonly Memory[];
  /** Releases the memory that was taken for kept values. */
  abandon(): void;
}

/** Opens the runs of one runner. One run is open at a time, because runs share memory. */
export class OpenRun {
  #current: object | undefined;

  /** @param begin begins the run; if it throws, no run is open. */
  open(begin: () => RunSteps): PlanRun {
    if (this.#current)
      throw new RecordingError(
        "another run of this runner is open: finish() or abandon() it before the next",
      );
    const steps = begin();
    const { launches, memoryOf } = steps;
    const run = {};
    this.#current = run;
    let at = 0;
    const assertOpen = (): void => {
      if (this.#current !== run) throw new RecordingError("this run has ended: start another");
    };
    return {
      runTo: (end) => {
        assertOpen();
        if (!Number.isInteger(end) || end < at || end > launches)
          throw new RangeError(
            `runTo(${end}): ${at} launches have run of ${launches}, and none runs twice`,
          );
        if (end > at) steps.runRange(at, end);
        at = end;
      },
      memoryOf: (buffer) => {
        assertOpen();
        return memoryOf(buffer);
      },
      finish: () => {
        assertOpen();
        this.#current = undefined;
        return steps.finish(at);
      },
      abandon: () => {
        assertOpen();
        this.#current = undefined;
        steps.abandon();
      },
    };
  }
}
