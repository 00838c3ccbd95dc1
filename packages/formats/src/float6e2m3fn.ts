import { defineFormat, type FloatFormat } from "./format.js";

/** OCP MX FP6 E2M3: neither infinity nor NaN, maximum 7.5. */
export const float6e2m3fn: FloatFormat<Uint8Array> = /* @__PURE__ */ defineFormat({
  name: "float6e2m3fn",
  bits: 6,
  exponentBits: 2,
  mantissaBits: 3,
  bias: 1,
  isSigned: true,
  hasInfinity: false,
  hasZero: true,
  nanEncoding: "none",
  nanPayload: "canonical",
});
