import { defineFormat, type FloatFormat } from "./format.js";

/** E3M4 after IEEE 754, with infinities and NaNs: maximum 15.5. */
export const float8e3m4: FloatFormat<Uint8Array> = /* @__PURE__ */ defineFormat({
  name: "float8e3m4",
  bits: 8,
  exponentBits: 3,
  mantissaBits: 4,
  bias: 3,
  isSigned: true,
  hasInfinity: true,
  hasZero: true,
  nanEncoding: "ieee",
  nanPayload: "canonical",
});
