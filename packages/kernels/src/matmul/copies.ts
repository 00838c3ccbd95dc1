import type { ProgramContext } from "@halfstep/device";
import type { BlockFactors } from "./block.js";
import type { Engine } from "./engine.js";

/** Elements of each factor that a product by blocks copies at a time as they are stored; undefined for a factor that it decodes. */
export interface Copies {
  readonly a: 4 | 8 | undefined;
  readonly b: 4 | 8 | undefined;
}

/**
 * A factor is copied where its rows are whole groups of elements, stored as they are multiplied. Eight elements of float16, 16 bytes,
 * move at a time where both factors allow it, and four otherwise, because both lie in one array in workgroup memory.
 */
export function copiesOf(
  engine: Exclude<Engine, { readonly kind: "rows" }>,
  { left, right }: Pick<BlockFactors, "left" | "right">,
  bindings: ProgramContext["bindings"],
): Copies {
  const isHalf = engine.kind === "matrix" && engine.matrix.component === "f16";
  const [a, b] = [left, right].map(({ copied }, index) => {
    const { dtype, rounding } = bindings[index] ?? {};
    const isStoredSo = isHalf
      ? dtype === "float16" && rounding !== "bfloat16"
      : dtype === "float32" && !rounding;
    return isStoredSo ? copied?.elements : undefined;
  });
  if (isHalf && a === 8 && b === 8) return { a, b };
  return { a: a && 4, b: b && 4 };
}

/** The largest group of elements of which lines of this length consist. */
export const groupOf = (length: number): 1 | 4 | 8 =>
  length % 8 === 0 ? 8 : length % 4 === 0 ? 4 : 1;
