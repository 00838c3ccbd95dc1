import type { AttentionBlock } from "./matrix-block.js";
import type { AttentionTile, ResultTile } from "./tile.js";
import type { TileRows } from "./visibility.js";

/**
 * The WGSL of a pass over all scores: a tile has some rows of one side, queries or keys, and iterates over the other. In each step it
 * has the scores of its rows, in a backward pass also their changes, outGradient valueᵀ. The pass turns them into weights for the rows
 * of the other side, which it adds to its results.
 */
export interface PassCode {
  readonly rows: TileRows;
  /** Whether it reads outGradient and statistics. */
  readonly isBackward: boolean;
  readonly results: readonly ResultTile[];
  /** For scores in registers: four columns a lane, as `score0 …` and `change0 …` of the tile's rows. */
  statements(tile: AttentionTile): PassStatements;
  /** For scores in workgroup memory, where `statements` of a tile of one row do not suffice. */
  blockStatements?(block: AttentionBlock): BlockStatements;
}

/** The parts of the WGSL that differ between passes. */
interface PassStatements {
  readonly functions?: string;
  /** Registers of the rows, declared for the whole tile. */
  readonly registers?: string;
  /** The loads of a lane's four columns in a step. */
  readonly columns?: string;
  /** Turns the scores of row r into weights. */
  weigh(r: number): string;
  /** Statements between the loop and the stores of the results. */
  readonly beforeStores?: string;
  readonly afterStores?: string;
}

/**
 * The same where scores are computed by blocks in workgroup memory, for the row `row` of an invocation, which it may share with others.
 */
export interface BlockStatements {
  readonly functions?: string;
  /** Declarations of workgroup memory. */
  readonly memory?: string;
  /** Registers of the row. */
  readonly registers?: string;
  /** Turns the row's scores in a step into weights. After it all invocations have passed a barrier. */
  readonly weigh: string;
  readonly beforeStores?: string;
  readonly afterStores?: string;
}

/** The two sides of a tile, in WGSL. */
export interface Sides {
  /** The number of rows of the tile's entry. */
  readonly rows: string;
  /** The last column of its entry that any row reads. */
  readonly lastColumn: string;
  /** Declares `begin` and `end`, the range of columns of the loop, for so many rows from `first` on. */
  bounds(first: string, rows: number): string;
  readonly first: string;
  /**
   * The operands whose products are the scores (and below, the changes): the one along the rows, and the one along the columns.
   */
  readonly score: readonly [rows: string, columns: string];
  readonly change: readonly [rows: string, columns: string];
}

export const sidesOf: Readonly<Record<TileRows, Sides>> = {
  queries: {
    rows: "s.queries",
    lastColumn: "seen - 1u",
    bounds: (first, rows) =>
      `  let end = select(seen, min(seen, ${first} + ${rows}u), s.causal != 0u);\n`,
    first: "0u",
    score: ["query", "key"],
    change: ["outGradient", "value"],
  },
  keys: {
    rows: "s.keys",
    lastColumn: "s.queries - 1u",
    bounds: (first) => `  let begin = select(0u, ${first}, s.causal != 0u);
  let end = select(0u, s.queries, ${first} < seen);
`,
    first: "begin",
    score: ["key", "query"],
    change: ["value", "outGradient"],
  },
};
