import { flagBinding, tellGradients, tellGradientsOf } from "../found-flag.js";
import { largestOf } from "../wgsl/magnitudes.js";
import { wovenName } from "../woven-names.js";
import type { StoreObserver } from "./store-observer.js";

const flag = wovenName("foundInf");
const bits = wovenName("stored_bits");

/**
 * Sets a flag of gradients from stored values: the same flag as from `checkFinite`, without loading the values again. It tests
 * numbers in registers, which a GPU compiler may assume to be finite; drivers that compute on a CPU do not assume this.
 */
export const gradientFlag: StoreObserver = {
  name: "check-finite",
  binding: { ...flagBinding, name: flag },
  scalars: () => [],
  values: () => ({}),
  declarations(results) {
    const other = results.find(({ dtype }) => dtype !== "float32");
    if (other)
      throw new TypeError(`binding ${other.name} is checked as float32, not ${other.dtype}`);
    const functions = results.map(
      ({ name }) =>
        `fn ${wovenName("observe")}_${name}(i: u32, before: vec4u, after: vec4u) { ${bits} = max(${bits}, after); }\n`,
    );
    return `var<private> ${bits}: vec4u;\n${functions.join("")}`;
  },
  tell: () => `let most = ${largestOf(bits)};${tellGradients(flag, "most", "0x7f800000u")}`,
  reference: (_, after, words) => tellGradientsOf(after, words),
};
