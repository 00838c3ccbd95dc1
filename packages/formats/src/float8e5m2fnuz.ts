import { defineFormat, type FloatFormat } from "./format.js";

/** E5M2 of Graphcore and AMD MI300: no infinity, no −0, NaN is 0x80, maximum 57344. */
export const float8e5m2fnuz: FloatFormat<Uint8Array> = /* @__PURE__ */ defineFormat({
  name: "float8e5m2fnuz",
  bits: 8,
  exponentBits: 5,
  mantissaBits: 2,
  bias: 16,
  isSigned: true,
  hasInfinity: false,
  hasZero: true,
  nanEncoding: "negativeZero",
  nanPayload: "canonical",
});
