import { flagBinding, tellGradients, tellGradientsOf } from "../found-flag.js";
import { largestOf } from "../wgsl/magnitudes.js";
import type { StoreObserver } from "./store-observer.js";

/**
 * Tells a flag of gradients what is stored: what `checkFinite` finds in memory, without loading it again. It looks at numbers in
 * registers, where the compiler of a driver that was told of no infinities may assume that there are none; those that compute on a
 * CPU do not.
 */
export const gradientFlag: StoreObserver = {
  name: "check-finite",
  binding: flagBinding,
  scalars: () => [],
  values: () => ({}),
  declarations(results) {
    const other = results.find(({ dtype }) => dtype !== "float32");
    if (other)
      throw new TypeError(`binding ${other.name} is checked as float32, not ${other.dtype}`);
    const functions = results.map(
      ({ name }) =>
        `fn observe_${name}(i: u32, before: vec4u, after: vec4u) { stored_bits = max(stored_bits, after); }\n`,
    );
    return `var<private> stored_bits: vec4u;\n${functions.join("")}`;
  },
  tell: () =>
    `let most = ${largestOf("stored_bits")};${tellGradients("foundInf", "most", "0x7f800000u")}`,
  reference: (_, after, words) => tellGradientsOf(after, words),
};
