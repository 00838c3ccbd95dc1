import type { CompileProgress } from "@halfstep/device";

/** Measures the time of training without that of compiling, so that rates and the time left do not depend on it. */
export class TrainingClock {
  readonly #now: () => number;
  readonly #started: number;
  #compiled = 0;
  #compilingSince: number | undefined;

  /** @param now milliseconds since some start */
  constructor(now: () => number) {
    this.#now = now;
    this.#started = now();
  }

  /** Seconds since the start, without compiling. */
  get seconds(): number {
    const compiling = this.#compilingSince === undefined ? 0 : this.#now() - this.#compilingSince;
    return (this.#now() - this.#started - this.#compiled - compiling) / 1000;
  }

  /** Notes the progress of compiling. Returns the seconds since it began. */
  compiling({ compiled, total }: CompileProgress): number {
    this.#compilingSince ??= this.#now();
    const milliseconds = this.#now() - this.#compilingSince;
    if (compiled === total) {
      this.#compiled += milliseconds;
      this.#compilingSince = undefined;
    }
    return milliseconds / 1000;
  }
}
