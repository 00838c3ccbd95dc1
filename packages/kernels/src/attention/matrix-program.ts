import { type HeadOperand, headBases } from "./heads.js";
import {
  type AttentionBlock,
  type BlockNeeds,
  paddedQuads,
  padding,
  scoreColumns,
  scoreParts,
  subgroupsOf,
  teamOf,
} from "./matrix-block.js";
import {
  type BlockStatements,
  entryOf,
  firstColumn,
  forEntry,
  type PassCode,
  sidesOf,
} from "./pass-code.js";
import type { AttentionParts } from "./shape.js";
import { each, type ResultTile, rowQuads, tokenOf } from "./tile.js";
import { tileVisibility, visibilityFunctions } from "./visibility.js";

/** An operand in workgroup memory. */
interface Staged {
  readonly name: string;
  /** The variable: operands that are never needed at the same time share one. */
  readonly memory: string;
  readonly along: "rows" | "columns";
  readonly size: "s.size" | "s.width";
  readonly quads: number;
}

/** The operands of a pass in workgroup memory. */
function stagedBy({ sizeQuads, widthQuads }: AttentionParts, pass: PassCode): readonly Staged[] {
  const { score, change } = sidesOf[pass.rows];
  const staged = (
    name: string,
    along: Staged["along"],
    isSize: boolean,
    memory = `block_${name}`,
  ): Staged => ({
    ...{ name, memory, along },
    ...(isSize ? { size: "s.size", quads: sizeQuads } : { size: "s.width", quads: widthQuads }),
  });
  const ofScores = [staged(score[0], "rows", true), staged(score[1], "columns", true)];
  return pass.isBackward
    ? [...ofScores, staged(change[0], "rows", false), staged(change[1], "columns", false)]
    : [...ofScores, staged("value", "columns", false, `block_${score[1]}`)];
}

/** What the blocks of a pass hold. */
export function blockNeeds(
  parts: AttentionParts,
  pass: PassCode,
  operands: readonly HeadOperand[],
): BlockNeeds {
  const staged = stagedBy(parts, pass);
  const quads = (along: Staged["along"]): number[] =>
    staged.filter((each) => each.along === along).map((each) => each.quads);
  return {
    factors: operands.filter(({ isResult }) => !isResult).map(({ binding }) => binding),
    rows: quads("rows"),
    columns: quads("columns"),
    sharesColumns: !pass.isBackward,
    results: pass.results.map((result) => result.quads),
    scores: pass.isBackward ? 2 : 1,
  };
}

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
  const stage = (one: Staged): string => stageOperand(block, one, lastColumn, length);
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
  ].join(""),
  loop: `  for (var first_column = ${firstColumn(parts, pass.rows)}; first_column < end; first_column += ${columns}u) {
    workgroupBarrier();
${early.map(stage).join("")}    workgroupBarrier();
${scores(block, "score", inPass(score))}${isBackward ? scores(block, "change", inPass(change)) : ""}    workgroupBarrier();
${late.map(stage).join("")}${own.weigh}${results.map((result) => addWeighted(block, result, staged)).join("")}  }
`,
})}${own.beforeStores ?? ""}${stores.join("")}${own.afterStores ?? ""}}
`;
}

// The second keeps overflow: a conversion may store the largest finite number instead of an infinity, which the loss scaler could not find.
const halves = /* wgsl */ `fn as_halves(x: vec4f) -> vec2u { return bitcast<vec2u>(vec4<f16>(x)); }
fn to_halves(x: vec4f) -> vec2u { return as_halves(select(x, x * 3e38, abs(x) > vec4f(65504.0))); }
`;

/** Quads of a row of scores, and of weights, with what separates rows. */
const scoreStride = (block: AttentionBlock): number =>
  (block.across * scoreColumns(block) + padding.floats) / 4;
const weightStride = ({ columns }: AttentionBlock): number => (columns + padding.halves) / 4;
const headStride = (block: AttentionBlock, quads: number): number =>
  paddedQuads(block, quads) + padding.halves / 4;

function memoryOf(block: AttentionBlock, staged: readonly Staged[], pass: PassCode): string {
  const { rows } = block;
  const quads = new Map<string, number>();
  for (const { memory, along, quads: own } of staged) {
    const needed = block[along] * headStride(block, own);
    quads.set(memory, Math.max(needed, quads.get(memory) ?? 0));
  }
  const scored = pass.isBackward ? ["score", "change"] : ["score"];
  return [
    ...[...quads].map(([name, count]) => `${name}: array<vec2u, ${count}>`),
    ...scored.map((name) => `${name}_block: array<vec4f, ${rows * scoreStride(block)}>`),
    ...pass.results.map(
      ({ weights }) => `${weights}_weights: array<vec2u, ${rows * weightStride(block)}>`,
    ),
  ]
    .map((declared) => `var<workgroup> ${declared};\n`)
    .join("");
}

/** Loads an operand's rows of the block, or its columns of a step, with zeros behind the elements of a head. */
function stageOperand(
  block: AttentionBlock,
  { name, memory, along, size, quads }: Staged,
  lastColumn: string,
  length: string,
): string {
  const perLine = paddedQuads(block, quads);
  const [origin, last] =
    along === "rows" ? ["first_row", `${length} - 1u`] : ["first_column", lastColumn];
  return `    for (var q = local; q < ${block[along] * perLine}u; q += ${subgroupsOf(block) * block.lanes}u) {
      let c = q % ${perLine}u;
      let token = min(${origin} + q / ${perLine}u, ${last});
      let quad = select(vec4f(), quad_${name}(${tokenOf(name, "token")}, c), c < ((${size} + 3u) >> 2u));
      ${memory}[q / ${perLine}u * ${headStride(block, quads)}u + c] = as_halves(quad);
    }
`;
}

/** Places of matrices: of a subgroup's part, whose first line or column is `origin`. */
const placeOf = (origin: string, offset: number, stride: number): string =>
  `(${origin} + ${offset}u) * ${stride}u`;

/** The products of the rows with the columns of a step, into workgroup memory. */
function scores(
  block: AttentionBlock,
  name: "score" | "change",
  [left, right]: readonly Staged[],
): string {
  const { matrix, columns } = block;
  const { n, k } = matrix;
  const [a, b] = [left, right] as [Staged, Staged];
  const [aStride, bStride] = [headStride(block, a.quads), headStride(block, b.quads)];
  const own = scoreColumns(block);
  const parts = columns / own;
  const depth = paddedQuads(block, a.quads) / scoreParts(block);
  const tiles = tilesOf(block, own);
  return `    {
${tiles.all.map(([i, j]) => `      var sum${i}_${j} = Sum();\n`).join("")}      for (var step = 0u; step < ${depth}u; step += ${k / 4}u) {
        let c = part_of_columns / ${parts}u * ${depth}u + step;
${tiles.down
  .map(
    (i) =>
      `        let a${i} = subgroupMatrixLoad<Left, row_major>(&${a.memory}, ${placeOf("line_in_block", i * matrix.m, aStride)} + c, ${aStride}u);\n`,
  )
  .join("")}${tiles.right
  .map(
    (j) =>
      `        { let b = subgroupMatrixLoad<Right, col_major>(&${b.memory}, ${placeOf(`part_of_columns % ${parts}u * ${own}u`, j * n, bStride)} + c, ${bStride}u);
${tiles.down.map((i) => `          sum${i}_${j} = subgroupMatrixMultiplyAccumulate(a${i}, b, sum${i}_${j});\n`).join("")}        }
`,
  )
  .join("")}      }
${tiles.all
  .map(([i, j]) => `      ${storeScores(block, name, i, j, `sum${i}_${j}`)}\n`)
  .join("")}    }
`;
}

/** Stores a matrix where the scores of the subgroup's tile (i, j) lie. */
const storeScores = (
  block: AttentionBlock,
  name: "score" | "change",
  i: number,
  j: number,
  matrix: string,
): string =>
  `subgroupMatrixStore<row_major>(&${name}_block, ${placeOfScores(block, i, j)}, ${matrix}, ${scoreStride(block)}u);`;

const placeOfScores = (block: AttentionBlock, i: number, j: number): string => {
  const { matrix } = block;
  return `${placeOf("line_in_block", i * matrix.m, scoreStride(block))} + part_of_columns * ${scoreColumns(block) / 4}u + ${(j * matrix.n) / 4}u`;
};

/** The matrices of a subgroup that computes so many columns. */
function tilesOf({ matrix, rows, down }: AttentionBlock, columns: number) {
  const downs = numbers(rows / down / matrix.m);
  const right = numbers(columns / matrix.n);
  return {
    down: downs,
    right,
    all: downs.flatMap((i) => right.map((j) => [i, j] as const)),
  };
}

/** Columns of a result that one subgroup computes. */
const resultColumns = (block: AttentionBlock, { quads }: ResultTile): number =>
  (paddedQuads(block, quads) * 4) / block.across;

const sumsOf = (
  block: AttentionBlock,
  result: ResultTile,
  line: (sum: string, i: number, j: number) => string,
): string =>
  tilesOf(block, resultColumns(block, result))
    .all.map(([i, j]) => line(`${result.name}${i}_${j}`, i, j))
    .join("");

/** Adds to a result its weights times the rows of its values. */
function addWeighted(block: AttentionBlock, result: ResultTile, staged: readonly Staged[]): string {
  const { matrix, columns } = block;
  const { m, n, k } = matrix;
  const { name, weights, values } = result;
  const { memory, quads } = staged.find((one) => one.name === values) as Staged;
  const [aStride, bStride] = [weightStride(block), headStride(block, quads)];
  const own = resultColumns(block, result);
  const { down, right } = tilesOf(block, own);
  return `    for (var c = 0u; c < ${columns}u; c += ${k}u) {
${down
  .map(
    (i) =>
      `      let a${i} = subgroupMatrixLoad<Left, row_major>(&${weights}_weights, ${placeOf("line_in_block", i * m, aStride)} + c / 4u, ${aStride}u);\n`,
  )
  .join("")}${right
  .map(
    (j) =>
      `      { let b = subgroupMatrixLoad<Right, row_major>(&${memory}, c * ${bStride}u + part_of_columns * ${own / 4}u + ${(j * n) / 4}u, ${bStride}u);
${down.map((i) => `        ${name}${i}_${j} = subgroupMatrixMultiplyAccumulate(a${i}, b, ${name}${i}_${j});\n`).join("")}      }
`,
  )
  .join("")}    }
`;
}

/** The part of a result's columns, from matrix `first` of each subgroup on, that fits where scores lie. */
interface Chunk {
  readonly first: number;
  readonly count: number;
}

function chunksOf(block: AttentionBlock, result: ResultTile): readonly Chunk[] {
  const { n } = block.matrix;
  const all = resultColumns(block, result) / n;
  const most = scoreColumns(block) / n;
  return numbers(Math.ceil(all / most)).map((c) => ({
    first: c * most,
    count: Math.min(most, all - c * most),
  }));
}

/** Moves a chunk of sums to where scores lie. */
const chunkOut = (block: AttentionBlock, { name }: ResultTile, { first, count }: Chunk): string =>
  tilesOf(block, count * block.matrix.n)
    .all.map(([i, j]) => `  ${storeScores(block, "score", i, j, `${name}${i}_${first + j}`)}\n`)
    .join("");

/** Multiplies the sums of a result by a number of each row. All invocations enter it, and no scores are needed any more. */
export const scaleSums = (block: AttentionBlock, result: ResultTile, factor: string): string =>
  chunksOf(block, result)
    .map((chunk) => {
      const { matrix } = block;
      const back = tilesOf(block, chunk.count * matrix.n).all.map(
        ([i, j]) =>
          `  ${result.name}${i}_${chunk.first + j} = subgroupMatrixLoad<Sum, row_major>(&score_block, ${placeOfScores(block, i, j)}, ${scoreStride(block)}u);\n`,
      );
      return `  workgroupBarrier();
${chunkOut(block, result, chunk)}  workgroupBarrier();
  ${eachSum(block, `score_block[at] *= ${factor};`)}
  workgroupBarrier();
${back.join("")}`;
    })
    .join("");

/** Stores the rows of a result in a binding; rows behind `length` are left out. */
function storeSums(
  block: AttentionBlock,
  result: ResultTile,
  binding: string,
  length: string,
): string {
  const perPart = scoreColumns(block) / 4;
  const stored = resultColumns(block, result) / 4;
  return chunksOf(block, result)
    .map(
      ({ first, count }) => `  workgroupBarrier();
${chunkOut(block, result, { first, count })}  workgroupBarrier();
  ${eachSum(
    block,
    `let inside = q % ${perPart}u;
    let c = q / ${perPart}u * ${stored}u + ${(first * block.matrix.n) / 4}u + inside;
    if ((row < ${length}) & (inside < ${(count * block.matrix.n) / 4}u) & (c < ((${result.size} + 3u) >> 2u))) {
      store_${binding}(${tokenOf(result.out, "row")} + c, ${result.finished("score_block[at]", 0)});
    }`,
  )}
`,
    )
    .join("");
}

/** A loop over the quads of scores of an invocation's row that it computes: `q` in the row, `at` in the block. */
export const eachScore = (block: AttentionBlock, statements: string): string =>
  eachOf(block, block.columns, statements);

/** The same where sums of results lie. */
const eachSum = (block: AttentionBlock, statements: string): string =>
  eachOf(block, block.across * scoreColumns(block), statements);

const eachOf = (block: AttentionBlock, columns: number, statements: string): string =>
  `for (var q = part_of_row; q < ${columns / 4}u; q += ${teamOf(block)}u) {
    let at = line * ${scoreStride(block)}u + q;
    ${statements}
  }`;

/** WGSL: the score, or the change, of quad `at`. */
export const scoreAt = (block: AttentionBlock, name: "score" | "change"): string =>
  numbers(scoreParts(block))
    .map((part) => `${name}_block[at + ${(part * block.columns) / 4}u]`)
    .join(" + ");

/** Stores a quad of weights, at the place of quad `q` of the row's scores. */
export const putWeights = (block: AttentionBlock, weights: string, value: string): string =>
  `${weights}_weights[line * ${weightStride(block)}u + q] = to_halves(${value});`;

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

const numbers = (count: number): number[] => Array.from({ length: count }, (_, i) => i);
