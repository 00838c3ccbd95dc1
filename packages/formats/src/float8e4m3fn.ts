import { defineFormat, type FloatFormat } from "./format.js";

/** OCP FP8 E4M3: no infinity, NaN in one code per sign, maximum 448. The format of weights and activations. */
export const float8e4m3fn: FloatFormat<Uint8Array> = /* @__PURE__ */ defineFormat({
  name: "float8e4m3fn",
  bits: 8,
  exponentBits: 4,
  mantissaBits: 3,
  bias: 7,
  isSigned: true,
  hasInfinity: false,
  hasZero: true,
  nanEncoding: "allOnes",
  nanPayload: "canonical",
});
