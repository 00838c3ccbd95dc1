import { defineFormat, type FloatFormat } from "./format.js";

/** OCP MX FP6 E3M2: neither infinity nor NaN, maximum 28. */
export const float6e3m2fn: FloatFormat<Uint8Array> = /* @__PURE__ */ defineFormat({
  name: "float6e3m2fn",
  bits: 6,
  exponentBits: 3,
  mantissaBits: 2,
  bias: 3,
  isSigned: true,
  hasInfinity: false,
  hasZero: true,
  nanEncoding: "none",
  nanPayload: "canonical",
});
