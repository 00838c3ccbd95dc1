import type { SubgroupMatrix } from "@halfstep/device";
import type { MatrixBlock } from "./block-table.js";

/** Bytes added to each line in workgroup memory, so that neighbours of a column lie in different banks. */
const skew = 16;

/** Where the factors of a matrix block, and after the last of their products its results, lie in workgroup memory. */
export interface MatrixMemory {
  /** Bytes between lines of a factor: its rows or columns where it lies along k, each k otherwise. */
  readonly aLine: number;
  readonly bLine: number;
  /** Bytes before the right factor in a stage, and in a whole stage. */
  readonly aBytes: number;
  readonly stageBytes: number;
  /** Bytes between rows of results. */
  readonly resultLine: number;
  /** Rows of each subgroup's results that are in memory at a time. */
  readonly resultRows: number;
  readonly bytes: number;
}

/** The memory of a block whose factors lie along k or across it. */
export function matrixMemory(
  block: MatrixBlock,
  { m, component }: Pick<SubgroupMatrix, "m" | "component">,
  along: Readonly<Record<"a" | "b", "k" | "across">>,
): MatrixMemory {
  const { rows, columns, depth, subgroupRows, stages } = block;
  const lineOf = (elements: number): number => elements * (component === "f16" ? 2 : 4) + skew;
  const ofFactor = (of: "k" | "across", size: number) =>
    of === "k"
      ? { line: lineOf(depth), bytes: size * lineOf(depth) }
      : { line: lineOf(size), bytes: depth * lineOf(size) };
  const a = ofFactor(along.a, rows);
  const b = ofFactor(along.b, columns);
  const stageBytes = a.bytes + b.bytes;
  const resultLine = columns * 4 + skew;
  const down = rows / subgroupRows;
  const bytes = Math.max(stages * stageBytes, down * m * resultLine);
  let resultRows = m;
  while (subgroupRows % (2 * resultRows) === 0 && down * 2 * resultRows * resultLine <= bytes)
    resultRows *= 2;
  return {
    ...{ aLine: a.line, bLine: b.line, aBytes: a.bytes, stageBytes },
    ...{ resultLine, resultRows, bytes },
  };
}

const directions = ["k", "across"] as const;

/** Bytes of a block, whichever way its factors lie. */
export const mostMatrixBytes = (
  block: MatrixBlock,
  matrix: Pick<SubgroupMatrix, "m" | "component">,
): number =>
  Math.max(
    ...directions.flatMap((a) =>
      directions.map((b) => matrixMemory(block, matrix, { a, b }).bytes),
    ),
  );
