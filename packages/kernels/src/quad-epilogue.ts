import type { EpilogueCode } from "./epilogue.js";
import { indexingWgsl } from "./indexing.js";

/**
 * The way of whole quads through an epilogue, where there is one: functions, and the expression that is stored at quad `at` in the
 * place of `result`. Both are WGSL expressions.
 */
export function quadEpilogue(
  epilogue: EpilogueCode | undefined,
  result: string,
  at: string,
): { readonly functions: string; readonly stored: string } {
  if (!epilogue) return { functions: "", stored: result };
  const { functions, operands } = epilogue;
  return {
    functions: functions + operands.map(({ name, kind }) => indexingWgsl(kind, name)).join(""),
    stored: epilogue.call(
      result,
      operands.map(({ name }) => `quad_${name}(${at})`),
    ),
  };
}
