import type { Carrier } from "../carrier.js";
import type { StopRequest } from "./agreed-stop.js";
import type { BegunRows } from "./rows-exchange.js";

const nonFinite = 1;
const stop = 2;

/** What ranks agree on in a step: with its last part they get the flags that any of them has set. */
export interface Agreement {
  /** One word: the flags of this rank, then those of all. */
  readonly flags: Int32Array;
  /** Takes the flags of all ranks, and tells whether a gradient of any of them is infinite or NaN. */
  end(): boolean;
}

/** The exchanges of one step. */
export class StepExchange {
  /** Gradients whose rows are still to come, by group and offset. */
  readonly begun: Map<string, BegunRows> = new Map();
  /** The parts of each group that are still to come; absent until its first part. */
  readonly #missing: (number | undefined)[];
  readonly #stop: StopRequest;
  #isFinite = true;

  /** @param groups groups of gradients. */
  constructor(groups: number, stop: StopRequest) {
    this.#missing = new Array<undefined>(groups).fill(undefined);
    this.#stop = stop;
  }

  /**
   * Notes that a gradient of this rank is infinite or NaN. The means carry such numbers, too; the agreement keeps scales equal whatever a
   * sum makes of them.
   */
  foundNonFinite(): void {
    this.#isFinite = false;
  }

  /** Counts a part of a group that is exchanged next. Undefined unless it is the last one of the step. */
  agreementWith(group: number, part: { readonly count: number }): Agreement | undefined {
    this.#missing[group] = (this.#missing[group] ?? part.count) - 1;
    if (!this.#missing.every((parts) => parts === 0)) return undefined;
    const flags = Int32Array.of((this.#isFinite ? 0 : nonFinite) | (this.#stop.wanted ? stop : 0));
    return {
      flags,
      end: () => {
        this.#stop.agreed(has(flags, stop));
        return has(flags, nonFinite);
      },
    };
  }
}

/** Gives all ranks the flags that any of them has set, by a collective of its own. */
export async function exchangeFlags(carrier: Carrier, flags: Int32Array): Promise<void> {
  const each = Int32Array.of(has(flags, nonFinite) ? nonFinite : 0, has(flags, stop) ? stop : 0);
  await carrier.max(each, { label: "the overflow flag" });
  flags[0] = (each[0] as number) | (each[1] as number);
}

const has = (flags: Int32Array, flag: number): boolean => ((flags[0] as number) & flag) !== 0;
