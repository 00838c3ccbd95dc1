import type { AttentionBlock } from "./matrix-block.js";
import type { AttentionParts } from "./shape.js";
import type { AttentionTile, ResultTile } from "./tile.js";
import { type TileRows, windowStart } from "./visibility.js";

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
  bounds(parts: AttentionParts, first: string, rows: number): string;
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
    bounds({ isWindowed }, first, rows) {
      const end = `select(seen, min(seen, ${first} + ${rows}u), s.causal != 0u)`;
      return isWindowed
        ? `  let begin = ${windowStart(first)};
  let end = min(${end}, ${first} + ${rows}u + s.window);
`
        : `  let end = ${end};\n`;
    },
    score: ["query", "key"],
    change: ["outGradient", "value"],
  },
  keys: {
    rows: "s.keys",
    lastColumn: "s.queries - 1u",
    bounds({ isWindowed }, first, rows) {
      const begin = `select(0u, ${first}, s.causal != 0u)`;
      const end = `select(0u, s.queries, ${first} < seen)`;
      return isWindowed
        ? `  let begin = max(${begin}, ${windowStart(first)});
  let end = min(${end}, ${first} + ${rows}u + s.window);
`
        : `  let begin = ${begin};
  let end = ${end};
`;
    },
    score: ["key", "query"],
    change: ["value", "outGradient"],
  },
};

/** WGSL: the first column of the loop. Where all columns are seen, no `begin` is declared. */
export const firstColumn = ({ isWindowed }: AttentionParts, side: TileRows): string =>
  isWindowed || side === "keys" ? "begin" : "0u";

/** WGSL: the entry of queries of a tile. A tile of keys that heads of queries share has the first one of its group. */
export const entryOf = ({ isGrouped }: AttentionParts, side: TileRows): string =>
  `tile / tiles${isGrouped && side === "keys" ? " * s.group" : ""}`;

/** The parts of a program between its bases and its stores. */
interface EntryCode {
  /** Declares `begin` and `end`. */
  readonly bounds: string;
  /** Registers of the rows. */
  readonly registers: string;
  /** The loop over columns. */
  readonly loop: string;
}

/**
 * Registers and loop for the entry of a tile, after `query_start`, `seen` and the bounds of the loop. A tile of keys that heads of queries
 * share runs the loop for each of these heads.
 */
export function forEntry(
  parts: AttentionParts,
  side: TileRows,
  { bounds, registers, loop }: EntryCode,
): string {
  const declarations = `  let query_start = entry * s.queries;
  let seen = seen_keys(entry);
${bounds}`;
  if (!parts.isGrouped || side === "queries") return `${declarations}${registers}${loop}`;
  return `${registers}  for (var member = 0u; member < s.group; member++) {
  let entry = entry + member;
  let query_base = query_base + member * s.query_head;
  let outGradient_base = outGradient_base + member * s.outGradient_head;
${declarations}${loop}  }
`;
}
