import type { Recording } from "../record/recording.js";
import type { Storage } from "../record/storage.js";
import type { Planning } from "./pipeline.js";
import { type Plan, plan } from "./plan.js";
import { Redefinitions } from "./redefinitions.js";
import { areEqual, type Structure, type StructurePart, structureOf } from "./structure.js";

/** Plans that are kept for reuse. */
const capacity = 64;

interface Entry {
  readonly structure: Structure;
  readonly plan: Plan;
}

/** Plans by the structure of their recordings; the least recently used plan is evicted. */
export class PlanCache {
  readonly #planning: Planning;
  /** The most recently used last. */
  readonly #entries: Entry[] = [];
  /** Reused buffer for the structure of every recording; a new plan keeps a copy of it. */
  readonly #parts: StructurePart[] = [];
  readonly #redefinitions = new Redefinitions();
  readonly #onDrop: (plan: Plan) => void;

  /** @param onDrop called with a plan that is removed to make room. */
  constructor(planning: Planning, onDrop: (plan: Plan) => void) {
    this.#planning = planning;
    this.#onDrop = onDrop;
  }

  /** Empties the cache and returns its plans. */
  clear(): readonly Plan[] {
    return this.#entries.splice(0).map((entry) => entry.plan);
  }

  /** The plan of a recording, and the residents that it uses, in the plan's order. */
  lookUp(recording: Recording): { readonly plan: Plan; readonly residents: readonly Storage[] } {
    const structure = structureOf(recording, this.#planning.passes, this.#parts);
    const known = this.#entries.findLastIndex((entry) => areEqual(entry.structure, structure));
    const { residents } = structure;
    if (known >= 0) return { plan: this.#used(known).plan, residents };
    this.#redefinitions.note(recording);
    const made = plan(recording, this.#planning);
    this.#entries.push({ structure: { parts: [...structure.parts], residents: [] }, plan: made });
    const oldest = this.#entries.length > capacity ? this.#entries.shift() : undefined;
    if (oldest) this.#onDrop(oldest.plan);
    return { plan: made, residents };
  }

  /** The entry at an index, which becomes the most recently used. */
  #used(index: number): Entry {
    const entry = this.#entries[index] as Entry;
    if (index < this.#entries.length - 1) {
      this.#entries.splice(index, 1);
      this.#entries.push(entry);
    }
    return entry;
  }
}
