import type { KernelAmpPrimitives } from "@halfstep/kernels/amp";
import { type SearchMemory, type SearchModes, StepSearches } from "../record/step-searches.js";
import type { Storage } from "../record/storage.js";
import { ampPrimitives, type TensorAmpPrimitives } from "./amp.js";
import { countingPrimitives } from "./counting-primitives.js";
import type { Runtime } from "./runtime.js";

/**
 * What runtimes can do where the entry `@halfstep/tensor` is loaded: the options `provenance` and `underflow`,, `target.ampPrimitives`, and
 * the primitive `countExponents`. Programs of the entry `functional` alone bundle none of them.
 */
export abstract class FurtherRuntime {
  /** @internal The searches that the options `provenance` and `underflow` ask for. */
  searches(modes: SearchModes, memory: SearchMemory): StepSearches {
    return new StepSearches(modes, memory);
  }

  /** @internal The primitives of loss scaling for this runtime. */
  lossScaling(): TensorAmpPrimitives {
    return ampPrimitives(this as unknown as Runtime);
  }

  /** @internal The primitives of `kernels`, with `countExponents`. */
  countingPrimitives(): KernelAmpPrimitives<Storage> {
    return countingPrimitives(this as unknown as Runtime);
  }
}
