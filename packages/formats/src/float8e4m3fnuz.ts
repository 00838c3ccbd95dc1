import { defineFormat, type FloatFormat } from "./format.js";

/** E4M3 of Graphcore and AMD MI300: no infinity, no −0, NaN is 0x80, maximum 240. */
export const float8e4m3fnuz: FloatFormat<Uint8Array> = /* @__PURE__ */ defineFormat({
  name: "float8e4m3fnuz",
  bits: 8,
  exponentBits: 4,
  mantissaBits: 3,
  bias: 8,
  isSigned: true,
  hasInfinity: false,
  hasZero: true,
  nanEncoding: "negativeZero",
  nanPayload: "canonical",
});
