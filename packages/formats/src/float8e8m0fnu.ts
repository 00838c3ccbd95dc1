import { defineFormat, type FloatFormat } from "./format.js";

/** OCP MX's scale: the powers of two from 2⁻¹²⁷ to 2¹²⁷, and NaN. No sign, no zero, no infinity. */
export const float8e8m0fnu: FloatFormat<Uint8Array> = /* @__PURE__ */ defineFormat({
  name: "float8e8m0fnu",
  bits: 8,
  exponentBits: 8,
  mantissaBits: 0,
  bias: 127,
  isSigned: false,
  hasInfinity: false,
  hasZero: false,
  nanEncoding: "allOnes",
  nanPayload: "canonical",
});
