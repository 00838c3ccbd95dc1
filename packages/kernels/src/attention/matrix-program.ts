import type { ProgramContext } from "@halfstep/device";
import { type HeadOperand, headBases } from "./heads.js";
import { type AttentionBlock, keepsRows, subgroupsOf, teamOf } from "./matrix-block.js";
import { addWeighted, keptRows, scores, storeSums, sumsOf } from "./matrix-products.js";
import { eachScore, putWeights, scoreAt } from "./matrix-scores.js";
import { blockNeeds, memoryOf, type Staged, stagedBy, stageOperand } from "./matrix-staging.js";
import {
  type BlockStatements,
  entryOf,
  firstColumn,
  forEntry,
  type PassCode,
  sidesOf,
} from "./pass-code.js";
import type { AttentionParts } from "./shape.js";
import { each, rowQuads } from "./tile.js";
import { tileVisibility, visibilityFunctions } from "./visibility.js";

/**
 * The program of a pass by blocks in workgroup memory, which subgroups multiply in hardware: factors and weights of float16, and
 * float32 sums. The scores of a step lie in workgroup memory, where invocations turn them into weights. There is no subgroup
 * arithmetic, because a driver crashes where it shares a program with matrices.
 */
export function matrixProgram(
  parts: AttentionParts,
  pass: PassCode,
  operands: readonly HeadOperand[],
  block: AttentionBlock,
  bindings: ProgramContext["bindings"],
): string {
  const { isSizeAligned, isWidthAligned } = parts;
  const { isBackward, results } = pass;
  const { rows: length, lastColumn, bounds, score, change } = sidesOf[pass.rows];
  const { rows, columns, lanes, across, matrix } = block;
  const { m, n, k } = matrix;
  const invocations = subgroupsOf(block) * lanes;
  const team = teamOf(block);
  const staged = stagedBy(parts, pass);
  const own = pass.blockStatements?.(block) ?? weighedAlone(parts, pass, block);
  const inPass = (names: readonly string[]): readonly Staged[] =>
    staged.filter(({ name }) => names.includes(name));
  const isCopied = ({ name, size }: Staged): boolean => {
    const { dtype, rounding } =
      bindings[operands.find((one) => one.name === name)?.binding ?? -1] ?? {};
    const isAligned = size === "s.size" ? isSizeAligned : isWidthAligned;
    return isAligned && dtype === "float16" && rounding !== "bfloat16";
  };
  const stage = (one: Staged): string =>
    stageOperand(block, one, isCopied(one), lastColumn, length);
  const isKept = keepsRows(blockNeeds(parts, pass, operands), block);
  const scored = (name: "score" | "change", factors: readonly string[]): string =>
    scores(block, name, inPass(factors), isKept);
  const alongRows = staged.filter(({ along }) => along === "rows");
  // Operands that share memory with others are staged between scores and results.
  const early = inPass(isBackward ? [score[1], change[1]] : [score[1]]);
  const late = isBackward ? [] : inPass(["value"]);
  const stores = results.map((result) =>
    storeSums(block, result, parts.results === "joined" ? "results" : result.out, length),
  );
  return `${[
    rowQuads("query", "s.size", isSizeAligned),
    rowQuads("key", "s.size", isSizeAligned),
    rowQuads("value", "s.width", isWidthAligned),
    isBackward ? rowQuads("outGradient", "s.width", isWidthAligned) : "",
    visibilityFunctions(parts),
    own.functions ?? "",
  ].join("")}${halves}
alias Left = subgroup_matrix_left<f16, ${k}, ${m}>;
alias Right = subgroup_matrix_right<f16, ${n}, ${k}>;
alias Sum = subgroup_matrix_result<f32, ${n}, ${m}>;
${memoryOf(block, staged, pass)}${own.memory ?? ""}
@compute @workgroup_size(${invocations}) @subgroup_size(${lanes})
fn main(
  @builtin(workgroup_id) group: vec3u,
  @builtin(num_workgroups) groups: vec3u,
  @builtin(local_invocation_index) local: u32,
  @builtin(subgroup_id) subgroup: u32,
) {
  let tile = group.x + group.y * groups.x;
  let tiles = (${length} + ${rows - 1}u) / ${rows}u;
  let entry = ${entryOf(parts, pass.rows)};
  let first_row = tile % tiles * ${rows}u;
  if (entry >= s.entries) { return; }
  let line = local / ${team}u;
  let row = first_row + line;
  let part_of_row = local % ${team}u;
  let line_in_block = subgroup / ${across}u * ${rows / block.down}u;
  let part_of_columns = subgroup % ${across}u;
${headBases(operands)}${forEntry(parts, pass.rows, {
  bounds: bounds(parts, "first_row", rows),
  registers: [
    own.registers ?? "",
    ...results.map((result) => sumsOf(block, result, (sum) => `  var ${sum} = Sum();\n`)),
    ...alongRows.map(stage),
    ...(isKept ? [`  workgroupBarrier();\n`, ...alongRows.map((one) => keptRows(block, one))] : []),
  ].join(""),
  loop: `  for (var first_column = ${firstColumn(parts, pass.rows)}; first_column < end; first_column += ${columns}u) {
    workgroupBarrier();
${early.map(stage).join("")}    workgroupBarrier();
${scored("score", score)}${isBackward ? scored("change", change) : ""}    workgroupBarrier();
${late.map(stage).join("")}${own.weigh}${results.map((result) => addWeighted(block, result, staged)).join("")}  }
`,
})}${own.beforeStores ?? ""}${stores.join("")}${own.afterStores ?? ""}}
`;
}

// The second keeps overflow: a conversion may store the largest finite number instead of an infinity, which the loss scaler could not find.
const halves = /* wgsl */ `fn as_halves(x: vec4f) -> vec2u { return bitcast<vec2u>(vec4<f16>(x)); }
fn to_halves(x: vec4f) -> vec2u { return as_halves(select(x, x * 3e38, abs(x) > vec4f(65504.0))); }
`;

/** Weights of which each is computed from its own score, as by a tile of one row. */
function weighedAlone(
  parts: AttentionParts,
  { rows: side, statements, results }: PassCode,
  block: AttentionBlock,
): BlockStatements {
  const { functions, registers, columns, weigh } = statements({ lanes: 1, rows: 1 });
  const { lastColumn } = sidesOf[side];
  return {
    ...(functions !== undefined && { functions }),
    ...(registers !== undefined && { registers }),
    weigh: `    ${eachScore(
      block,
      `let column = first_column + q * 4u;
${each(4, (u) => `    let column${u} = min(column + ${u}u, ${lastColumn});\n`)}${columns ?? ""}    var score0 = ${scoreAt(block, "score")};
    var change0 = ${scoreAt(block, "change")};
${tileVisibility(parts, side, 1)}${weigh(0)}${results.map((result) => `    ${putWeights(block, result.weights, `${result.weights}0`)}\n`).join("")}`,
    )}
    workgroupBarrier();
`,
  };
}
