import { defineFormat, type FloatFormat } from "./format.js";

/** E4M3 after IEEE 754, with infinities and NaNs: maximum 240. */
export const float8e4m3: FloatFormat<Uint8Array> = /* @__PURE__ */ defineFormat({
  name: "float8e4m3",
  bits: 8,
  exponentBits: 4,
  mantissaBits: 3,
  bias: 7,
  isSigned: true,
  hasInfinity: true,
  hasZero: true,
  nanEncoding: "ieee",
  nanPayload: "canonical",
});
