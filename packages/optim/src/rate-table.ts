import type { Binding } from "@halfstep/device";
import { allocateResident, type ResidentTarget } from "@halfstep/kernels";
import { shown } from "./checks.js";
import type { LearningRate } from "./schedules/schedule.js";

/** Columns of a table besides the learning rate. */
export interface RateColumns {
  /** Columns 1 to 3 of the row for applied step `step`, counted from 0. */
  row(step: number): readonly [number, number, number];
  /** The step from which on the columns are constant in float32. */
  readonly settledAt: number;
  /** A key, equal for equal columns. */
  readonly key: string;
}

/** Tables of up to this many rows are made completely; longer ones grow with the steps. */
const wholeRows = 2 ** 20;
const firstRows = 4096;

/**
 * Learning rates and bias corrections by applied step, computed in float64 and stored on the device as rows of four
 * float32. A constant rate is not part of the table, so that it can change from step to step: its column is 1.
 */
export class RateTable<B> {
  readonly #target: ResidentTarget<B>;
  #rate: LearningRate | undefined;
  #key: string | undefined;
  #rows = 0;
  #binding: Binding<B> | undefined;

  constructor(target: ResidentTarget<B>) {
    this.#target = target;
  }

  /**
   * The table for these rates, with a row for each step before `steps`.
   *
   * @throws RangeError for a rate of a row that is not finite, and for a negative one of the last step.
   */
  bind(lr: LearningRate, columns: RateColumns, steps: number): Binding<B> {
    const rate = typeof lr === "number" ? 1 : lr;
    const scheduled = typeof lr === "number" ? 1 : (lr.totalSteps ?? Number.POSITIVE_INFINITY);
    const total = Math.max(scheduled, columns.settledAt);
    // Rows that are made ahead may be negative: a schedule that ends there is not asked for them.
    if (typeof lr === "function") {
      const step = Math.min(steps, total) - 1;
      const now = lr(step);
      if (now < 0) throw wrongRate(now, step);
    }
    const isCurrent = this.#rate === rate && this.#key === columns.key;
    if (this.#binding && isCurrent && this.#rows >= Math.min(steps, total)) return this.#binding;
    this.#rows = total <= wholeRows ? total : rowsFor(steps, total);
    this.#rate = rate;
    this.#key = columns.key;
    this.#binding = this.#make(rate, columns);
    return this.#binding;
  }

  // A new buffer each time: launches that were recorded against the old one may not have run yet.
  #make(rate: LearningRate, columns: RateColumns): Binding<B> {
    const length = this.#rows * 4;
    const values = new Float32Array(length);
    for (let step = 0; step < this.#rows; step++) {
      const lr = typeof rate === "number" ? rate : rate(step);
      if (!Number.isFinite(lr)) throw wrongRate(lr, step);
      const row = columns.row(step);
      const [first, second, third] = row;
      if (row.length !== 3 || !(isNumber(first) && isNumber(second) && isNumber(third)))
        throw new RangeError(
          `columns.row(${step}) gives [${row.join(", ")}]: it must give three numbers, 0 where the rule has no column`,
        );
      // Adam has 18,700 rows: a list of each would take most of the time in which an optimizer is made.
      const at = step * 4;
      values[at] = lr;
      values[at + 1] = first;
      values[at + 2] = second;
      values[at + 3] = third;
    }
    const buffer = allocateResident(this.#target, length * 4);
    const binding: Binding<B> = { buffer, offset: 0, length, dtype: "float32" };
    this.#target.write(binding, values);
    return binding;
  }
}

const wrongRate = (lr: unknown, step: number): RangeError =>
  new RangeError(
    `the schedule gives a learning rate of ${shown(lr)} for step ${step}: it must be a number of at least 0`,
  );

const isNumber = (value: unknown): boolean => typeof value === "number" && !Number.isNaN(value);

const rowsFor = (steps: number, total: number): number =>
  Math.min(total, Math.max(firstRows, 2 ** Math.ceil(Math.log2(steps + 1))));
