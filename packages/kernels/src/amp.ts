// Loss scaling on a device, and the search for overflows.

export {
  ampPrimitives,
  type KernelAmpPrimitives,
  type PlainAmpPrimitives,
  plainAmpPrimitives,
} from "./amp/amp-primitives.js";
export { checkFinite } from "./amp/check-finite.js";
export { combineFlags } from "./amp/combine-flags.js";
export { rescale, unscale } from "./amp/unscale.js";
export { gatherFoundInf } from "./amp/update-scale.js";
export { updateScale } from "./amp/update-scale-by-exponents.js";
export { countExponents } from "./diagnostics/exponent-histogram.js";
export { decodeFound, findNonFinite } from "./diagnostics/find-non-finite.js";
