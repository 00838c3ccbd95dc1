import { defineFormat, type FloatFormat } from "./format.js";

/** OCP FP8 E5M2: the upper half of a float16, maximum 57344. The format of gradients. */
export const float8e5m2: FloatFormat<Uint8Array> = /* @__PURE__ */ defineFormat({
  name: "float8e5m2",
  bits: 8,
  exponentBits: 5,
  mantissaBits: 2,
  bias: 15,
  isSigned: true,
  hasInfinity: true,
  hasZero: true,
  nanEncoding: "ieee",
  nanPayload: "canonical",
});
