import { powerOfTwo } from "./exponent.js";
import { checkNumber, classifier, formatInfo, type RealFormat, ulpOf } from "./real.js";
import { type EncodeOptions, overflows, roundingOf } from "./rounding.js";

/** JavaScript's own numbers, IEEE 754 binary64. Every number is one of its numbers: `round` only checks, and saturates. */
export const float64: RealFormat = /* @__PURE__ */ (() => {
  const name = "float64";
  const finfo = formatInfo(
    64,
    52,
    Number.MAX_VALUE,
    -Number.MAX_VALUE,
    powerOfTwo(-1022),
    Number.MIN_VALUE,
  );
  const round = (value: number, options?: EncodeOptions): number => {
    checkNumber(name, value);
    overflows(roundingOf(options), false);
    const isInfinite = Math.abs(value) === Infinity;
    return isInfinite && options?.saturate ? Math.sign(value) * finfo.max : value;
  };
  const ulp = ulpOf({ name, finfo }, 52);
  const nextUp = (value: number): number => {
    checkNumber(name, value);
    if (value === -Infinity) return finfo.min;
    const spacing = ulp(value);
    if (value >= 0 || Number.isNaN(value)) return value + spacing;
    // Below a power of two the spacing is half of that above; where it is not, half a spacing off rounds to a neighbour or back.
    const magnitude = -value;
    const lower = magnitude - spacing / 2;
    return -(lower < magnitude ? lower : magnitude - spacing);
  };
  return {
    name,
    finfo,
    round,
    ulp,
    nextUp,
    nextDown: (value) => {
      checkNumber(name, value);
      return -nextUp(-value);
    },
    classify: classifier({ name, finfo, round }),
  };
})();
