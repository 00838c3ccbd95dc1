import { type AttentionBlock, padding, scoreColumns, scoreParts, teamOf } from "./matrix-block.js";

/** Quads of a row of scores, and of weights, with what separates rows. */
export const scoreStride = (block: AttentionBlock): number =>
  (block.across * scoreColumns(block) + padding.floats) / 4;
export const weightStride = ({ columns }: AttentionBlock): number => (columns + padding.halves) / 4;
/** A loop over the quads of scores of an invocation's row that it computes: `q` in the row, `at` in the block. */
export const eachScore = (block: AttentionBlock, statements: string): string =>
  eachOf(block, block.columns, statements);

/** The same for each quad in turn, whose number is passed, so that registers may belong to it. */
export function eachScoreInTurn(block: AttentionBlock, statements: (i: number) => string): string {
  const [team, quads] = [teamOf(block), block.columns / 4];
  return numbers(quadsOf(block))
    .map(
      (i) => `    ${team > quads ? `if (part_of_row < ${quads}u) ` : ""}{
    let q = part_of_row + ${i * team}u;
    let at = line * ${scoreStride(block)}u + q;
    ${statements(i)}
    }
`,
    )
    .join("");
}

/** Quads of an invocation in a step. */
export const quadsOf = (block: AttentionBlock): number =>
  Math.ceil(block.columns / 4 / teamOf(block));

/** The same where sums of results lie. */
export const eachSum = (block: AttentionBlock, statements: string): string =>
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

/** 0, 1, 2 … */
export const numbers = (count: number): number[] => Array.from({ length: count }, (_, i) => i);
