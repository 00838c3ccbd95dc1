import { type AttentionBlock, subgroupsOf, teamOf } from "./matrix-block.js";
import { scaleSums } from "./matrix-products.js";
import { eachScoreInTurn, putWeights, quadsOf, scoreAt } from "./matrix-scores.js";
import { type BlockStatements, firstColumn } from "./pass-code.js";
import type { AttentionParts } from "./shape.js";
import { each, type ResultTile } from "./tile.js";
import { keptOf, scaledScores, seenColumns, tileVisibility } from "./visibility.js";

/**
 * A larger score raises the maximum to which exponentials are relative only where it exceeds it by more than log 2⁸: until then
 * exponentials fit float16 as well, and sums need not be rescaled, for which they leave their registers.
 */
const slack = "5.5";

/**
 * The softmax of attention's scores in workgroup memory, step by step. The invocations that share a row have its maximum and its sum so
 * far in registers, and store exponentials as weights of float16. `peak` is the largest score, `top0` the maximum in use.
 */
export function softmaxStatements(
  parts: AttentionParts,
  block: AttentionBlock,
  result: ResultTile,
): BlockStatements {
  const team = teamOf(block);
  const own = (value: string): string => `team_values[local] = ${value};`;
  const ofTeam = (fold: (a: string, b: string) => string): string =>
    Array.from({ length: team }, (_, t) => `team_values[line * ${team}u + ${t}u]`).reduce(fold);
  const largest = `    ${own("most")}
    workgroupBarrier();
    most = ${ofTeam((a, b) => `max(${a}, ${b})`)};
`;
  const total = `  workgroupBarrier();
  ${own("total0")}
  workgroupBarrier();
  total0 = ${ofTeam((a, b) => `(${a} + ${b})`)};
`;
  const masked: AttentionParts = { ...parts, isDropping: false };
  const dropped: AttentionParts = { ...parts, mask: undefined };
  return {
    memory: `${team > 1 ? `var<workgroup> team_values: array<f32, ${subgroupsOf(block) * block.lanes}>;\n` : ""}var<workgroup> is_rising: atomic<u32>;
`,
    registers: "  var peak = -3.4e38; var top0 = -3.4e38; var total0 = 0.0;\n",
    weigh: `    var most = -3.4e38;
${each(quadsOf(block), (i) => `    var x${i} = vec4f();\n`)}${eachScoreInTurn(
  block,
  (i) => `let column = first_column + q * 4u;
    let score0 = ${scoreAt(block, "score")};
${tileVisibility(masked, "queries", 1)}    x${i} = shown(${scaledScores(masked, 0)}, ${seenColumns(masked, "queries", 0)});
    most = max(most, max(max(x${i}.x, x${i}.y), max(x${i}.z, x${i}.w)));`,
)}${team > 1 ? largest : ""}    peak = max(peak, most);
    var shrink = 1.0;
    if (most > top0 + ${slack}) {
      shrink = row_exp(vec4f(top0 - most)).x;
      top0 = most;
      total0 *= shrink;
      atomicStore(&is_rising, 1u);
    }
${eachScoreInTurn(
  block,
  (i) => `let column = first_column + q * 4u;
${tileVisibility(dropped, "queries", 1)}    let p = row_exp(x${i} - vec4f(top0));
    total0 += (p.x + p.y) + (p.z + p.w);
    ${putWeights(block, "score", keptOf(dropped, 0, "p"))}`,
)}    // A barrier, too.
    let rises = workgroupUniformLoad(&is_rising);
    if (local == 0u) { atomicStore(&is_rising, 0u); }
    if (rises != 0u && first_column != ${firstColumn(parts, "queries")}) {
${scaleSums(block, result, "shrink")}    }
`,
    beforeStores: `${team > 1 ? total : ""}  let sink = row_exp(vec4f(top0 - peak)).x;
  let divisor0 = 1.0 / select(total0, 1.0, total0 == 0.0)${parts.isDropping ? " * s.factor" : ""};
`,
    afterStores: `  if (part_of_row == 0u && row < s.queries) {
    store_normalizers(query_start + row, select(vec2f(peak, row_log(vec4f(total0 * sink)).x), vec2f(), total0 == 0.0));
  }
`,
  };
}
