import type { HalfDType } from "@halfstep/device";
import { elementWgsl, magnitudesOf } from "./elements.js";

/** How a unit `v` of a binding is stored at `i`, in WGSL. */
export interface StoredUnit {
  /** What precedes the binding in the name of the function that stores it. */
  readonly store: "store" | "store_first";
  /** The type of the unit. */
  readonly type: string;
  /** The unit that lies there. */
  readonly loaded: string;
  /** The unit as it lies in the buffer. */
  readonly packed: string;
  /** A unit rounded to a format. */
  rounded(value: string, format: HalfDType): string;
  /** Statements that write what was packed. */
  write(packed: string): string;
  /** Its units of the binding, for an observer: their index, and the bits of their magnitudes before the store and in `stored`. */
  readonly observed: readonly (readonly [index: string, before: string, after: string])[];
}

/**
 * A binding that a program moves in pairs of quads of 16 bits: `load_x(i)` and `store_x(i, pair)` move pair i, 16 bytes.
 * `store_first_x(i, quad)` stores the first quad of a pair alone, because the bytes behind a result may belong to another.
 */
export function pairStorage(
  name: string,
  dtype: HalfDType,
): { readonly load: string; readonly whole: StoredUnit; readonly first: StoredUnit } {
  const { store, magnitudes } = elementWgsl[dtype];
  const data = `${name}_data`;
  const decoded = (words: string): string => `quad_${dtype}(${words})`;
  const observed = (v: string, stored: string, index: string) =>
    [index, magnitudesOf(v), magnitudes(stored, 4)] as const;
  const rounded = (quad: string, format: HalfDType): string => `round4_${format}(${quad})`;
  return {
    load: `let words = ${data}[i]; return mat2x4f(${decoded("words.xy")}, ${decoded("words.zw")});`,
    whole: {
      ...{ store: "store", type: "mat2x4f" },
      loaded: `load_${name}(i)`,
      packed: `vec4u(${store("v[0]", 4)}, ${store("v[1]", 4)})`,
      rounded: (pair, format) =>
        `mat2x4f(${rounded(`${pair}[0]`, format)}, ${rounded(`${pair}[1]`, format)})`,
      write: (packed) => `${data}[i] = ${packed};`,
      observed: [
        observed("v[0]", "stored.xy", "i * 2u"),
        observed("v[1]", "stored.zw", "i * 2u + 1u"),
      ],
    },
    first: {
      ...{ store: "store_first", type: "vec4f" },
      loaded: decoded(`${data}[i].xy`),
      packed: store("v", 4),
      rounded,
      write: (packed) => `let words = ${packed}; ${data}[i].x = words.x; ${data}[i].y = words.y;`,
      observed: [observed("v", "stored", "i * 2u")],
    },
  };
}
