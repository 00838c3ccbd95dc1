import { bfloat16 } from "./bfloat16.js";
import { type HalfArrayConstructor, plainHalfArray } from "./half-array.js";

/** An array of bfloat16: a plain class over codes, on every engine. */
export const BFloat16Array: HalfArrayConstructor = /* @__PURE__ */ plainHalfArray(
  "BFloat16Array",
  bfloat16,
);
