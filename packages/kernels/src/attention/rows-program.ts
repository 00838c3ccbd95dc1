import { type HeadOperand, headBases } from "./heads.js";
import { entryOf, firstColumn, forEntry, type PassCode, sidesOf } from "./pass-code.js";
import type { AttentionParts } from "./shape.js";
import {
  type AttentionTile,
  accumulate,
  each,
  resultTile,
  rowPositions,
  rowQuads,
  scoreTile,
  storeResult,
  tileMain,
} from "./tile.js";
import { tileVisibility, visibilityFunctions } from "./visibility.js";

/** The program of a pass whose tiles lie in registers. */
export function rowsProgram(
  parts: AttentionParts,
  { rows: side, isBackward, results, statements }: PassCode,
  operands: readonly HeadOperand[],
  tile: AttentionTile,
): string {
  const { isSizeAligned, isWidthAligned } = parts;
  const { rows, lastColumn, bounds, score, change } = sidesOf[side];
  const own = statements(tile);
  const functions = [
    rowQuads("query", "s.size", isSizeAligned),
    rowQuads("key", "s.size", isSizeAligned),
    rowQuads("value", "s.width", isWidthAligned),
    isBackward ? rowQuads("outGradient", "s.width", isWidthAligned) : "",
    visibilityFunctions(parts),
    own.functions,
  ];
  const registers = [
    rowPositions(tile, score[0], rows),
    isBackward ? rowPositions(tile, change[0], rows) : "",
    own.registers,
    ...results.map((result) => resultTile(tile, result)),
  ];
  const step = [
    each(4, (u) => `    let column${u} = min(column + ${u}u, ${lastColumn});\n`),
    own.columns,
    scoreTile(tile, "score", ...score, "s.size"),
    isBackward ? scoreTile(tile, "change", ...change, "s.width") : "",
    tileVisibility(parts, side, tile.rows),
    each(tile.rows, (r) => `    {\n${own.weigh(r)}    }\n`),
    ...results.map((result) => accumulate(tile, result, lastColumn)),
  ];
  const stores = [
    own.beforeStores,
    ...results.map((result) =>
      storeResult(tile, result, parts.results === "joined" ? "results" : result.out, rows),
    ),
    own.afterStores,
  ];
  return `${functions.join("")}
${tileMain(tile, rows, entryOf(parts, side))}
${headBases(operands)}${forEntry(parts, side, {
  bounds: bounds(parts, "row", tile.rows),
  registers: registers.join(""),
  loop: `
  for (var first_column = ${firstColumn(parts, side)}; first_column < end; first_column += ${4 * tile.lanes}u) {
    let column = first_column + lane * 4u;
${step.join("")}  }
`,
})}${stores.join("")}}
`;
}
