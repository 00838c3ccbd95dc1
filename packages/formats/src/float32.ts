import { defineFormat, type FloatFormat } from "./format.js";

/** IEEE 754 binary32: 1 sign, 8 exponent and 23 mantissa bits; from 2⁻¹⁴⁹ to 3.4028e38. `round` is `Math.fround` with a choice of roundings. */
export const float32: FloatFormat<Uint32Array> = /* @__PURE__ */ defineFormat({
  name: "float32",
  bits: 32,
  exponentBits: 8,
  mantissaBits: 23,
  bias: 127,
  isSigned: true,
  hasInfinity: true,
  hasZero: true,
  nanEncoding: "ieee",
  nanPayload: "truncated",
});
