import type { HalfDType } from "@halfstep/device";

/** How a program stores units of a binding at index `i`, in WGSL. */
export interface StoredUnit {
  /** What precedes the binding in the name of the function that stores it. */
  readonly store: "store" | "store_first";
  /** The type of a unit. */
  readonly type: string;
  /** The unit that lies there. */
  readonly loaded: string;
  /** A unit rounded to a format. */
  rounded(value: string, format: HalfDType): string;
  /** A unit as it lies in the buffer. */
  packed(value: string): string;
  /** Statements that write what was packed. */
  write(packed: string): string;
  /** The operands of an observer for each quad of the unit: its index, and the bits of its magnitudes before and after it was packed. */
  observed(index: string, value: string, packed: string): readonly string[];
}

/**
 * A binding that a program moves in pairs of quads of 16 bits: `load_x(i)` and `store_x(i, pair)` move pair i, 16 bytes.
 * `store_first_x(i, quad)` stores the first quad of a pair alone, because the bytes behind a result may belong to another.
 *
 * @param data the name of its buffer.
 * @param quad how a quad is stored.
 */
export function pairStorage(
  data: string,
  dtype: HalfDType,
  quad: StoredUnit,
): { readonly load: string; readonly whole: StoredUnit; readonly first: StoredUnit } {
  const decoded = (words: string): string => `quad_${dtype}(${words})`;
  return {
    load: `let words = ${data}[i]; return mat2x4f(${decoded("words.xy")}, ${decoded("words.zw")});`,
    whole: {
      ...quad,
      type: "mat2x4f",
      rounded: (pair, format) =>
        `mat2x4f(${quad.rounded(`${pair}[0]`, format)}, ${quad.rounded(`${pair}[1]`, format)})`,
      packed: (pair) => `vec4u(${quad.packed(`${pair}[0]`)}, ${quad.packed(`${pair}[1]`)})`,
      observed: (i, pair, words) => [
        ...quad.observed(`${i} * 2u`, `${pair}[0]`, `${words}.xy`),
        ...quad.observed(`${i} * 2u + 1u`, `${pair}[1]`, `${words}.zw`),
      ],
    },
    first: {
      ...quad,
      store: "store_first",
      loaded: decoded(`${data}[i].xy`),
      write: (packed) => `let words = ${packed}; ${data}[i].x = words.x; ${data}[i].y = words.y;`,
      observed: (i, v, words) => quad.observed(`${i} * 2u`, v, words),
    },
  };
}
