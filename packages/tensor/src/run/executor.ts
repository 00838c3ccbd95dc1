import type { GraphPasses, PassName, Planning } from "../plan/pipeline.js";
import { type Plan, plan } from "../plan/plan.js";
import { PlanCache } from "../plan/plan-cache.js";
import type { Recording } from "../record/recording.js";
import type { ResidentMemory } from "../record/resident-memory.js";
import type { Memory } from "../record/storage.js";
import { type InvocationOptions, invocationOf } from "./invocation.js";
import type { PrepareOptions, Runner } from "./runner.js";

/** Plans recordings and runs them. */
export class Executor {
  /** The plan that ran last. */
  lastPlan: Plan | undefined;
  readonly #runner: Runner;
  readonly #memory: ResidentMemory;
  readonly #brought: GraphPasses = {};
  readonly #planning: Planning;
  readonly #plans: PlanCache;

  constructor(runner: Runner, memory: ResidentMemory, passes: readonly PassName[]) {
    this.#runner = runner;
    this.#memory = memory;
    this.#planning = { passes, brought: this.#brought, hardwareClass: runner.hardwareClass };
    this.#plans = new PlanCache(this.#planning, (dropped) => runner.forget([dropped]));
  }

  /** Adds passes to those of every runtime, for later plans. */
  bring(passes: GraphPasses): void {
    Object.assign(this.#brought, passes);
  }

  /** Runs a recording after its prelude, and assigns memory to the storages that it keeps. */
  run(recording: Recording, options?: InvocationOptions): void {
    if (recording.prelude) this.#execute(recording.prelude);
    const memory = this.#execute(recording, options);
    for (const [i, storage] of [...recording.kept].entries())
      this.#memory.adopt(storage, memory[i] as Memory);
  }

  /** The plan of a recording that will not run. */
  plan(recording: Recording): Plan {
    return plan(recording, this.#planning);
  }

  /** Plans a recording that will not run and caches the plan. Returns a function that compiles the plan's programs. */
  preparation(recording: Recording): (options: PrepareOptions) => Promise<void> {
    const prelude = recording.prelude && this.#plans.lookUp(recording.prelude).plan;
    const { plan: found } = this.#plans.lookUp(recording);
    return async (options) => {
      if (prelude) await this.#runner.prepare(prelude, { signal: options.signal });
      await this.#runner.prepare(found, options);
    };
  }

  /** Releases the memory of all plans and empties the cache. */
  forget(): void {
    this.#runner.forget(this.#plans.clear());
  }

  #execute(recording: Recording, options?: InvocationOptions): readonly Memory[] {
    const { plan: found, residents } = this.#plans.lookUp(recording);
    this.lastPlan = found;
    return this.#runner.start(found, invocationOf(recording, residents, options)).finish();
  }
}
