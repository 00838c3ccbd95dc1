import { bfloat16 } from "./bfloat16.js";
import { float4e2m1fn } from "./float4e2m1fn.js";
import { float6e2m3fn } from "./float6e2m3fn.js";
import { float6e3m2fn } from "./float6e3m2fn.js";
import { float8e3m4 } from "./float8e3m4.js";
import { float8e4m3 } from "./float8e4m3.js";
import { float8e4m3b11fnuz } from "./float8e4m3b11fnuz.js";
import { float8e4m3fn } from "./float8e4m3fn.js";
import { float8e4m3fnuz } from "./float8e4m3fnuz.js";
import { float8e5m2 } from "./float8e5m2.js";
import { float8e5m2fnuz } from "./float8e5m2fnuz.js";
import { float8e8m0fnu } from "./float8e8m0fnu.js";
import { float16 } from "./float16.js";
import { float32 } from "./float32.js";
import { float64 } from "./float64.js";
import type { FormatName, FormatsByName } from "./format.js";
import type { RealFormat } from "./real.js";
import { tfloat32 } from "./tfloat32.js";

/**
 * The format of that name. Import a format by its own name where you can: this function keeps all of them in a bundle.
 * @throws TypeError if there is none.
 */
export function formatOf<N extends FormatName>(name: N): FormatsByName[N];
export function formatOf(name: "float64"): RealFormat;
export function formatOf(name: FormatName | "float64"): RealFormat;
export function formatOf(name: FormatName | "float64"): RealFormat {
  const formats: FormatsByName & { float64: RealFormat } = {
    float16,
    bfloat16,
    tfloat32,
    float32,
    float64,
    float8e4m3fn,
    float8e5m2,
    float8e4m3fnuz,
    float8e5m2fnuz,
    float8e4m3b11fnuz,
    float8e4m3,
    float8e3m4,
    float8e8m0fnu,
    float6e2m3fn,
    float6e3m2fn,
    float4e2m1fn,
  };
  if (!Object.hasOwn(formats, name)) {
    throw new TypeError(
      `unknown number format "${String(name)}": use ${Object.keys(formats).join(", ")}`,
    );
  }
  return formats[name];
}
