import type { Binding } from "@halfstep/device";
import type { OpSite } from "./op-sites.js";
import type { Recording } from "./recording.js";
import type { Storage } from "./storage.js";

/** The outcome of a searched step: words for each site. */
export interface Search {
  readonly found: Binding<Storage>;
  readonly sites: readonly (OpSite & { readonly isBackward: boolean })[];
}

/** Number of steps that are searched after a step was reported bad. */
const stepsAfterBad = 100;

/** Number of searches that are kept: enough for every program that reads the outcomes of its steps. */
const keptSearches = 64;

/** Decides which steps are searched, and keeps the findings of the latest searches. */
export class SearchedSteps<Mode extends string> {
  readonly #mode: "always" | "off" | "after";
  readonly #drop: (search: Search) => void;
  readonly #searches: Search[] = [];
  readonly #listeners: WeakMap<Recording, ((search: Search) => void)[]> = new WeakMap();
  #stepsLeft = 0;

  /**
   * @param option the name of the option and its modes: never, after a step that a scaler has reported, and in every step.
   * @param drop called with a search that is evicted.
   */
  constructor(
    option: { readonly name: string; readonly mode: Mode; readonly after: Mode },
    drop: (search: Search) => void,
  ) {
    const { name, mode, after } = option;
    if (mode !== "off" && mode !== after && mode !== "always")
      throw new TypeError(
        `${name} is ${JSON.stringify(mode)}: it must be "off", "${after}" or "always"`,
      );
    this.#mode = mode === after ? "after" : (mode as "off" | "always");
    this.#drop = drop;
  }

  /** The search of the last searched step. */
  get latest(): Search | undefined {
    return this.#searches.at(-1);
  }

  /** Whether a search is still kept. */
  has(search: Search): boolean {
    return this.#searches.includes(search);
  }

  /** Whether the next step is to be searched; it then has to note its ops. */
  get isDue(): boolean {
    return this.#mode === "always" || (this.#mode === "after" && this.#stepsLeft > 0);
  }

  /** Begins a step: returns {@link isDue} and counts the step. */
  begin(): boolean {
    const { isDue } = this;
    if (isDue) this.#stepsLeft = Math.max(0, this.#stepsLeft - 1);
    return isDue;
  }

  /**
   * A function that returns the search of an open recording, once it was submitted, or undefined if it is not searched.
   */
  watch(recording: Recording): () => Search | undefined {
    let search: Search | undefined;
    const listeners = this.#listeners.get(recording) ?? [];
    this.#listeners.set(recording, listeners);
    listeners.push((found) => {
      search = found;
    });
    return () => search;
  }

  /** Keeps the search of a submitted step, and passes it to the functions from {@link watch}. */
  publish(search: Search, recording: Recording): void {
    search.found.buffer.handles++;
    this.#searches.push(search);
    const oldest = this.#searches.length > keptSearches ? this.#searches.shift() : undefined;
    if (oldest) this.#drop(oldest);
    for (const listener of this.#listeners.get(recording) ?? []) listener(search);
  }

  /**
   * Called after a step that needs an explanation (skipped, or all zeros). `goesOn`: whether to search the steps that
   * follow.
   */
  stepWasBad({ goesOn }: { readonly goesOn: boolean }): void {
    if (this.#mode === "after") this.#stepsLeft = goesOn ? stepsAfterBad : 0;
  }
}
