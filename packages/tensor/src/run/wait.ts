import type { PrepareOptions } from "./runner.js";

/** The wait of a caller for work that goes on if the caller gives up. */
export class Wait {
  /** Tells the caller's `onCompile`, until it throws. */
  readonly onCompile: PrepareOptions["onCompile"];
  readonly #given = new AbortController();
  readonly #signals: readonly AbortSignal[];

  constructor({ onCompile, signal }: PrepareOptions) {
    this.#signals = [...(signal ? [signal] : []), ...(onCompile ? [this.#given.signal] : [])];
    this.onCompile =
      onCompile &&
      ((progress) => {
        if (this.#given.signal.aborted) return;
        try {
          onCompile(progress);
        } catch (error) {
          this.#given.abort(error);
        }
      });
  }

  /** The result of `work`. Rejects as soon as the caller's signal is aborted, or `onCompile` has thrown. */
  for<T>(work: Promise<T>): Promise<T> {
    if (this.#signals.length === 0) return work;
    return new Promise((resolve, reject) => {
      const giveUp = ({ reason }: AbortSignal): void => {
        settle();
        reject(reason);
      };
      const listeners = this.#signals.map((signal) => {
        const listener = (): void => giveUp(signal);
        signal.addEventListener("abort", listener);
        return () => signal.removeEventListener("abort", listener);
      });
      const settle = (): void => {
        for (const remove of listeners) remove();
      };
      work.then(resolve, reject).finally(settle);
      const aborted = this.#signals.find(({ aborted }) => aborted);
      if (aborted) giveUp(aborted);
    });
  }
}
