import type { Recording } from "../recording.js";
import { type PassName, type Plan, plan } from "./plan.js";
import { structureOf } from "./structure.js";

/** Plans that are kept for reuse. */
const capacity = 64;

/** Plans by the structure of their recordings; the least recently used one makes room. */
export class PlanCache {
  readonly #passes: readonly PassName[];
  readonly #plans: Map<string, Plan> = new Map();

  constructor(passes: readonly PassName[]) {
    this.#passes = passes;
  }

  /** Empties the cache; returns what it had. */
  clear(): readonly Plan[] {
    const plans = [...this.#plans.values()];
    this.#plans.clear();
    return plans;
  }

  planFor(recording: Recording): Plan {
    const key = structureOf(recording, this.#passes);
    const found = this.#plans.get(key) ?? plan(recording, this.#passes);
    this.#plans.delete(key);
    this.#plans.set(key, found);
    if (this.#plans.size > capacity) this.#plans.delete(this.#plans.keys().next().value as string);
    return found;
  }
}
