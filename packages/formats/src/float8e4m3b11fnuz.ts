import { defineFormat, type FloatFormat } from "./format.js";

/** E4M3 with a bias of 11: no infinity, no −0, NaN is 0x80, maximum 30. */
export const float8e4m3b11fnuz: FloatFormat<Uint8Array> = /* @__PURE__ */ defineFormat({
  name: "float8e4m3b11fnuz",
  bits: 8,
  exponentBits: 4,
  mantissaBits: 3,
  bias: 11,
  isSigned: true,
  hasInfinity: false,
  hasZero: true,
  nanEncoding: "negativeZero",
  nanPayload: "canonical",
});
