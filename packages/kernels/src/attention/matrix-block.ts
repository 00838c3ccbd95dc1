import type { ProgramContext, SubgroupMatrix, Workgroups } from "@halfstep/device";
import { isCpu } from "../cpu-adapter.js";
import { linearWorkgroups } from "../kernel.js";
import { isExactInFloat16 } from "../matmul/engine.js";

/** How a workgroup computes a pass by hardware matrices: so many rows, and in each step so many columns of their scores. */
export interface AttentionBlock {
  readonly matrix: SubgroupMatrix;
  /** Invocations of a subgroup, which the program pins. */
  readonly lanes: number;
  readonly rows: number;
  readonly columns: number;
  /**
   * Subgroups down the rows, and across: results by columns, and scores by columns and then by parts along a head, which are added up
   * where they are read.
   */
  readonly down: number;
  readonly across: number;
  /** Elements of a head are padded with zeros to a multiple of this. */
  readonly unit: number;
}

/** What the blocks of a pass hold. Rows of heads are counted in quads. */
export interface BlockNeeds {
  /** The bindings of all factors. */
  readonly factors: readonly number[];
  /** Operands along the rows, and along the columns. */
  readonly rows: readonly number[];
  readonly columns: readonly number[];
  /** Whether the operands along the columns are read one after the other, through the same memory. */
  readonly sharesColumns: boolean;
  readonly results: readonly number[];
  /** Scores, and changes if there are any. */
  readonly scores: number;
}

/**
 * Elements added to each row in workgroup memory, so that neighbours of a column lie in different banks. Rows remain multiples of 16
 * bytes, as matrices are loaded.
 */
export const padding = { halves: 8, floats: 4 };

export const subgroupsOf = ({ down, across }: Pick<AttentionBlock, "down" | "across">): number =>
  down * across;

/** Invocations of a row. */
export const teamOf = (block: Pick<AttentionBlock, "down" | "across" | "lanes" | "rows">): number =>
  (subgroupsOf(block) * block.lanes) / block.rows;

/** Columns of scores that one subgroup computes. */
export const scoreColumns = ({
  matrix,
  columns,
  across,
}: Pick<AttentionBlock, "matrix" | "columns" | "across">): number =>
  Math.max(columns / across, matrix.n);

/** Parts of a head of which scores are computed separately. */
export const scoreParts = (block: Pick<AttentionBlock, "matrix" | "columns" | "across">): number =>
  (scoreColumns(block) * block.across) / block.columns;

/** Quads of a row of a head in a block, without what separates rows. */
export const paddedQuads = ({ unit }: Pick<AttentionBlock, "unit">, quads: number): number =>
  (Math.ceil((quads * 4) / unit) * unit) / 4;

/** Invocations of a workgroup: more would leave no choice of workgroups to run while one waits. */
const mostInvocations = 128;
/** Sums of a lane, in registers. */
const fewSums = 64;
const mostSums = 128;
/** Registers of a lane for factors that stay there from step to step. */
const mostKept = 32;
/** Blocks of more memory are used only where no smaller one would do: several workgroups should fit a processor. */
const frugalBytes = 32_768;

const sizes = [64, 32, 16, 8];
const counts = [1, 2, 4, 8, 16];

/** The block for a device; undefined where it multiplies no such factors, or none fits. */
export function attentionBlock(
  needs: BlockNeeds,
  { hardware, bindings, tier }: ProgramContext,
): AttentionBlock | undefined {
  const isHalf = needs.factors.every((factor) =>
    isExactInFloat16(bindings[factor] as (typeof bindings)[number]),
  );
  // Heads of a few elements would be padding for the most part.
  const isTiny = [...needs.rows, ...needs.columns].some((quads) => quads < 4);
  if (!hardware || isCpu({ hardware }) || !isHalf || isTiny || tier !== "native") return undefined;
  const { matrixSubgroupSize: lanes, workgroupBytes, workgroupInvocations } = hardware;
  for (const matrix of hardware.subgroupMatrices) {
    if (matrix.component !== "f16") continue;
    const found = blocksOf(needs, matrix, lanes).filter(
      (block) =>
        subgroupsOf(block) * lanes <= Math.min(mostInvocations, workgroupInvocations) &&
        blockBytes(needs, block) <= workgroupBytes,
    );
    const [best] = found.sort((a, b) => byMerits(merits(needs, a), merits(needs, b)));
    if (best) return best;
  }
  return undefined;
}

/**
 * What a program gains by a block, the most important first: few registers and little memory, then many scores a step, many rows, many
 * invocations, and few subgroups that share a row.
 */
function merits(needs: BlockNeeds, block: AttentionBlock): readonly number[] {
  const { rows, columns, across } = block;
  const hasFewSums = sumsOf(needs, block) <= fewSums;
  const isFrugal = blockBytes(needs, block) <= frugalBytes;
  return [Number(hasFewSums), Number(isFrugal), rows * columns, rows, subgroupsOf(block), -across];
}

/** The order of blocks by their merits, the best first. */
function byMerits(a: readonly number[], b: readonly number[]): number {
  const first = a.findIndex((merit, i) => merit !== b[i]);
  return first < 0 ? 0 : (b[first] as number) - (a[first] as number);
}

/** All blocks whose parts come out even. */
function blocksOf(needs: BlockNeeds, matrix: SubgroupMatrix, lanes: number): AttentionBlock[] {
  const { m, n, k } = matrix;
  return sizes.flatMap((rows) =>
    sizes.flatMap((columns) =>
      counts.flatMap((down) =>
        counts.flatMap((across): AttentionBlock[] => {
          const shape = { matrix, lanes, rows, columns, down, across };
          const block = { ...shape, unit: Math.max(k * scoreParts(shape), n * across) };
          const isEven =
            (rows / down) % m === 0 &&
            columns % n === 0 &&
            columns % k === 0 &&
            Number.isInteger(teamOf(block));
          return isEven && sumsOf(needs, block) <= mostSums ? [block] : [];
        }),
      ),
    ),
  );
}

const sumsOf = ({ results }: BlockNeeds, block: AttentionBlock): number =>
  results.reduce((sum, quads) => sum + 4 * paddedQuads(block, quads), 0) *
  (block.rows / (subgroupsOf(block) * block.lanes));

/** Whether a subgroup keeps the matrices of its rows in registers, instead of loading them in each step. */
export const keepsRows = (needs: BlockNeeds, block: AttentionBlock): boolean =>
  needs.rows.reduce((sum, quads) => sum + (4 * paddedQuads(block, quads)) / scoreParts(block), 0) *
    (block.rows / block.down / (2 * block.lanes)) <=
  mostKept;

/** Bytes of workgroup memory. */
function blockBytes(needs: BlockNeeds, block: AttentionBlock): number {
  const { rows, columns, across, lanes } = block;
  const row = (quads: number): number => 2 * (4 * paddedQuads(block, quads) + padding.halves);
  const sum = (values: readonly number[]): number => values.reduce((a, b) => a + b, 0);
  const ofColumns = needs.columns.map(row);
  const scores = needs.scores * 4 * (across * scoreColumns(block) + padding.floats);
  const weights = needs.results.length * 2 * (columns + padding.halves);
  // Of a softmax: a number of each invocation, and a flag.
  const shared = 4 * (subgroupsOf(block) * lanes + 1);
  return (
    rows * (sum(needs.rows.map(row)) + scores + weights) +
    columns * (needs.sharesColumns ? Math.max(...ofColumns) : sum(ofColumns)) +
    shared
  );
}

export const blockWorkgroups = (
  { rows }: AttentionBlock,
  entries: number,
  length: number,
): Workgroups => linearWorkgroups(entries * Math.ceil(length / rows), 1);
