import { type AttentionBlock, paddedQuads, scoreColumns, scoreParts } from "./matrix-block.js";
import { eachSum, numbers, scoreStride, weightStride } from "./matrix-scores.js";
import { headStride, type Staged } from "./matrix-staging.js";
import { type ResultTile, tokenOf } from "./tile.js";

/** Places of matrices: of a subgroup's part, whose first line or column is `origin`. */
const placeOf = (origin: string, offset: number, stride: number): string =>
  `(${origin} + ${offset}u) * ${stride}u`;

/** The part of a head, in quads, of which a subgroup computes scores: its length, and WGSL of its first quad. */
function partOfHead(
  block: AttentionBlock,
  quads: number,
): { readonly depth: number; readonly start: string } {
  const depth = paddedQuads(block, quads) / scoreParts(block);
  return { depth, start: `part_of_columns / ${block.columns / scoreColumns(block)}u * ${depth}u` };
}

const leftOf = (block: AttentionBlock, { memory, quads }: Staged, i: number, c: string): string =>
  `subgroupMatrixLoad<Left, row_major>(&${memory}, ${placeOf("line_in_block", i * block.matrix.m, headStride(block, quads))} + ${c}, ${headStride(block, quads)}u)`;

/** Declares the matrices of an operand along the rows. */
export function keptRows(block: AttentionBlock, operand: Staged): string {
  const { depth, start } = partOfHead(block, operand.quads);
  const { k } = block.matrix;
  return tilesOf(block, 0)
    .down.flatMap((i) =>
      numbers((4 * depth) / k).map(
        (d) =>
          `  let ${operand.name}${i}_${d} = ${leftOf(block, operand, i, `${start} + ${(d * k) / 4}u`)};\n`,
      ),
    )
    .join("");
}

/** The products of the rows, whose matrices may be kept in registers, with the columns of a step, into workgroup memory. */
export function scores(
  block: AttentionBlock,
  name: "score" | "change",
  [left, right]: readonly Staged[],
  isKept: boolean,
): string {
  const { matrix, columns } = block;
  const { n, k } = matrix;
  const [a, b] = [left, right] as [Staged, Staged];
  const bStride = headStride(block, b.quads);
  const own = scoreColumns(block);
  const { depth, start } = partOfHead(block, a.quads);
  const tiles = tilesOf(block, own);
  const products = (leftAt: (i: number) => string): string =>
    tiles.right
      .map(
        (j) =>
          `        { let b = subgroupMatrixLoad<Right, col_major>(&${b.memory}, ${placeOf(`part_of_columns % ${columns / own}u * ${own}u`, j * n, bStride)} + c, ${bStride}u);
${tiles.down.map((i) => `          sum${i}_${j} = subgroupMatrixMultiplyAccumulate(${leftAt(i)}, b, sum${i}_${j});\n`).join("")}        }
`,
      )
      .join("");
  const steps = isKept
    ? numbers((4 * depth) / k)
        .map(
          (d) => `      {
        let c = ${start} + ${(d * k) / 4}u;
${products((i) => `${a.name}${i}_${d}`)}      }
`,
        )
        .join("")
    : `      for (var step = 0u; step < ${depth}u; step += ${k / 4}u) {
        let c = ${start} + step;
${tiles.down.map((i) => `        let a${i} = ${leftOf(block, a, i, "c")};\n`).join("")}${products((i) => `a${i}`)}      }
`;
  return `    {
${tiles.all.map(([i, j]) => `      var sum${i}_${j} = Sum();\n`).join("")}${steps}${tiles.all
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

export const sumsOf = (
  block: AttentionBlock,
  result: ResultTile,
  line: (sum: string, i: number, j: number) => string,
): string =>
  tilesOf(block, resultColumns(block, result))
    .all.map(([i, j]) => line(`${result.name}${i}_${j}`, i, j))
    .join("");

/** Adds to a result its weights times the rows of its values. */
export function addWeighted(
  block: AttentionBlock,
  result: ResultTile,
  staged: readonly Staged[],
): string {
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
export function storeSums(
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
