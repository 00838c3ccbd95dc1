import { bfloat16 } from "./bfloat16.js";
import { float16 } from "./float16.js";
import type { FloatFormat, FormatName } from "./format.js";

/**
 * The format of that name. Import a format by its own name where you can: this function keeps all of them in a bundle.
 * @throws TypeError if there is none.
 */
export function formatOf(name: FormatName): FloatFormat {
  switch (name) {
    case "float16":
      return float16;
    case "bfloat16":
      return bfloat16;
    default:
      throw new TypeError(`unknown number format "${String(name)}": use float16 or bfloat16`);
  }
}
