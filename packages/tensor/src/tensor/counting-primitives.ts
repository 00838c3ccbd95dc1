import type { Binding } from "@halfstep/device";
import { EXPONENT_BINS, EXPONENT_WORDS } from "@halfstep/grad-scaler";
import { ampPrimitives, type KernelAmpPrimitives } from "@halfstep/kernels/amp";
import { insertBackwardRanges } from "../record/backward-range.js";
import type { Storage } from "../record/storage.js";
import type { Runtime } from "./runtime.js";

/**
 * The primitives of loss scaling of `kernels` for a runtime, whose `countExponents` also observes what the stores of the backward passes
 * round to zero.
 */
export function countingPrimitives(runtime: Runtime): KernelAmpPrimitives<Storage> {
  const primitives = ampPrimitives<Storage>(runtime.target);
  return {
    ...primitives,
    countExponents(gradients, exponents) {
      primitives.countExponents(gradients, exponents);
      const { backwardPasses, backwardRanges, completions } = runtime.recording;
      backwardRanges.push({ words: storesOf(exponents), passes: backwardPasses.length });
      completions.add(insertBackwardRanges);
    },
  };
}

/** The words of store observers in a scaler's exponents: after the counts. */
const storesOf = (exponents: Storage): Binding<Storage> => ({
  buffer: exponents,
  offset: EXPONENT_BINS * 4,
  length: EXPONENT_WORDS - EXPONENT_BINS,
  dtype: "uint32",
});
