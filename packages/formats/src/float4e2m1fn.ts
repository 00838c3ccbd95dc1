import { defineFormat, type FloatFormat } from "./format.js";

/** OCP MX FP4 E2M1: 0, 0.5, 1, 1.5, 2, 3, 4, 6 and their negatives; neither infinity nor NaN. */
export const float4e2m1fn: FloatFormat<Uint8Array> = /* @__PURE__ */ defineFormat({
  name: "float4e2m1fn",
  bits: 4,
  exponentBits: 2,
  mantissaBits: 1,
  bias: 1,
  isSigned: true,
  hasInfinity: false,
  hasZero: true,
  nanEncoding: "none",
  nanPayload: "canonical",
});
