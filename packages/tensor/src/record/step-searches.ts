import type { Binding } from "@halfstep/device";
import { insertSearch, type NonFiniteOrigin, originIn, type ProvenanceMode } from "./provenance.js";
import type { Recording } from "./recording.js";
import type { ReadOptions } from "./resident-memory.js";
import { type Search, SearchedSteps } from "./searched-steps.js";
import type { Storage } from "./storage.js";
import {
  insertCounts,
  sitesIn,
  type UnderflowMode,
  type UnderflowOrigin,
  type UnderflowSite,
  underflowIn,
} from "./underflow.js";

/** The steps that a runtime searches. */
export interface SearchModes {
  readonly provenance: ProvenanceMode;
  readonly underflow: UnderflowMode;
}

/** The memory of findings. */
export interface SearchMemory {
  read(words: Binding<Storage>, options?: ReadOptions): Promise<ArrayLike<number>>;
  /** Called with a search that is evicted. */
  drop(search: Search): void;
}

/** The searches of a runtime's steps: for values that are not finite, and for numbers that stores round to zero. */
export class StepSearches {
  readonly #provenance: SearchedSteps<ProvenanceMode>;
  readonly #underflow: SearchedSteps<UnderflowMode>;
  readonly #memory: SearchMemory;

  constructor({ provenance, underflow }: SearchModes, memory: SearchMemory) {
    this.#memory = memory;
    const drop = (search: Search): void => memory.drop(search);
    this.#provenance = new SearchedSteps(
      { name: "provenance", mode: provenance, after: "afterSkip" },
      drop,
    );
    this.#underflow = new SearchedSteps(
      { name: "underflow", mode: underflow, after: "afterZeros" },
      drop,
    );
  }

  /** Decides whether the step that begins is searched, which makes its recording note ops. */
  begin(recording: Recording): void {
    mark(recording, this.#provenance.begin(), this.#underflow.begin());
  }

  /** As {@link begin}, for a recording that is as that of the next step, but is no step. */
  rehearse(recording: Recording): void {
    mark(recording, this.#provenance.isDue, this.#underflow.isDue);
  }

  /**
   * Adds the launches of the searches to a complete recording. Returns a function to call when it is submitted.
   *
   * @param allocate memory of the recording.
   */
  insert(recording: Recording, allocate: (bytes: number) => Storage): () => void {
    if (recording.isSearched || recording.isCounted) recording.unsearched = [...recording.launches];
    const counts = insertCounts(recording, allocate);
    const search = insertSearch(recording, allocate);
    return () => {
      if (counts) this.#underflow.publish(counts, recording);
      if (search) this.#provenance.publish(search, recording);
    };
  }

  /** The first value of the last searched step that is not finite. */
  async nonFiniteOrigin(): Promise<NonFiniteOrigin | undefined> {
    const { latest } = this.#provenance;
    return latest && this.#originIn(latest);
  }

  /** The effect of the stores of the last counted step. */
  async underflow(): Promise<readonly UnderflowSite[]> {
    const { latest } = this.#underflow;
    return latest ? sitesIn(latest, await this.#memory.read(latest.found)) : [];
  }

  /** A function that finds the origin of an overflow, or of gradients that were all zero, once the step of an open recording has run. */
  watch(
    recording: Recording,
  ): (
    overflowed: boolean,
    allZero: boolean,
  ) => Promise<NonFiniteOrigin | UnderflowOrigin | undefined> {
    const overflow = this.#provenance.watch(recording);
    const zeros = this.#underflow.watch(recording);
    const background = { wait: "background" } as const;
    return async (overflowed, allZero) => {
      if (!overflowed && !allZero) return undefined;
      const search = overflowed ? overflow() : zeros();
      if (overflowed) {
        const origin = search && (await this.#originIn(search, background));
        // Skips come in series, and each of them needs an origin.
        this.#provenance.stepWasBad({ goesOn: true });
        return origin;
      }
      const origin = search && (await this.#underflowIn(search, background));
      this.#underflow.stepWasBad({ goesOn: origin === undefined });
      return origin;
    };
  }

  /** The findings of a search; undefined also where the search was evicted. */
  async #originIn(search: Search, options?: ReadOptions): Promise<NonFiniteOrigin | undefined> {
    if (!this.#provenance.has(search)) return undefined;
    return originIn(search, await this.#memory.read(search.found, options));
  }

  /** The origin of underflow in a counted step; undefined also where the count was evicted. */
  async #underflowIn(search: Search, options?: ReadOptions): Promise<UnderflowOrigin | undefined> {
    if (!this.#underflow.has(search)) return undefined;
    return underflowIn(search, await this.#memory.read(search.found, options));
  }
}

function mark(recording: Recording, isSearched: boolean, isCounted: boolean): void {
  recording.isSearched = isSearched;
  recording.isCounted = isCounted;
  if (isSearched || isCounted) recording.notes ??= new Map();
}
