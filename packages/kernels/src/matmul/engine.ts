import type { Hardware, ProgramContext, SubgroupMatrix } from "@halfstep/device";
import { isFloat8 } from "@halfstep/formats/dtypes";
import type { BlockSize } from "./block-size.js";
import { blocks, type MatrixBlock, type SharedBlock } from "./block-table.js";
import { mostMatrixBytes } from "./matrix-memory.js";
import { canLoad } from "./staging.js";

/** How a matrix product is computed. */
export type Engine =
  /** Each subgroup or invocation computes by itself: tile.ts. For small results, and where barriers are slow. */
  | { readonly kind: "rows" }
  /** A workgroup shares blocks of the factors in its memory: shared-block.ts. */
  | { readonly kind: "shared"; readonly block: SharedBlock }
  | MatrixEngine;

/** Blocks in workgroup memory, multiplied by hardware matrices: matrix-block.ts. */
export interface MatrixEngine {
  readonly kind: "matrix";
  readonly block: MatrixBlock;
  readonly matrix: SubgroupMatrix;
  /** Invocations of a subgroup, which the program pins. */
  readonly lanes: number;
}

/** The engine for a device and the storage of the factors, which are the first two bindings. */
export function chooseEngine(
  size: BlockSize | undefined,
  { hardware, bindings, tier }: ProgramContext,
): Engine {
  if (!size || !hardware) return { kind: "rows" };
  const table = blocks(hardware);
  // Where a workgroup has no room for large blocks, medium ones are better than none.
  const sizes = size === "large" ? [table.large, table.medium] : [table.medium];
  const isHalf = tier === "native" && bindings.slice(0, 2).every(isExactInFloat16);
  const matrices = hardware.subgroupMatrices.filter(
    ({ component }) => component === "f32" || isHalf,
  );
  const lanes = hardware.matrixSubgroupSize;
  for (const { matrix: candidates = [] } of sizes)
    for (const block of candidates) {
      const matrix = matrices.find((each) => fitsMatrices(block, each, lanes, hardware));
      if (matrix) return { kind: "matrix", block, matrix, lanes };
    }
  for (const { shared: candidates = [] } of sizes) {
    const block = candidates.find((each) =>
      fits(sharedBytes(each), sharedInvocations(each), hardware),
    );
    if (block) return { kind: "shared", block };
  }
  return { kind: "rows" };
}

/** Whether float16 holds what is loaded. It holds all 8-bit numbers, but not all that is rounded to bfloat16. */
export const isExactInFloat16 = ({
  dtype,
  rounding,
}: ProgramContext["bindings"][number]): boolean =>
  rounding === "float16" || (!rounding && dtype === "float16") || isFloat8(dtype);

type Limits = Pick<Hardware, "workgroupBytes" | "workgroupInvocations">;

const fits = (bytes: number, invocations: number, limits: Limits): boolean =>
  bytes <= limits.workgroupBytes && invocations <= limits.workgroupInvocations;

/** Sums that a lane keeps in registers: narrow subgroups have half as many registers for a lane. */
const mostSums = (lanes: number): number => (lanes < 32 ? 64 : 128);

/** Subgroups in a workgroup: drivers have a limit of their own, which WebGPU does not report; Mesa's software driver has this one. */
const mostSubgroups = 32;

function fitsMatrices(
  block: MatrixBlock,
  matrix: SubgroupMatrix,
  lanes: number,
  limits: Limits,
): boolean {
  const { rows, columns, depth, subgroupRows, subgroupColumns } = block;
  const subgroups = matrixSubgroups(block);
  const invocations = lanes * subgroups;
  return (
    subgroups <= mostSubgroups &&
    subgroupRows % matrix.m === 0 &&
    subgroupColumns % matrix.n === 0 &&
    depth % matrix.k === 0 &&
    subgroupRows * subgroupColumns <= mostSums(lanes) * lanes &&
    canLoad({ size: rows, depth }, invocations) &&
    canLoad({ size: columns, depth }, invocations) &&
    fits(mostMatrixBytes(block, matrix), invocations, limits)
  );
}

export const sharedInvocations = ({ rows, columns, perInvocation }: SharedBlock): number =>
  (rows / perInvocation) * (columns / perInvocation);

/** Quads of a factor's part in a shared block. Its lines, along k or across it, have one quad more than elements. */
export const sharedQuads = (size: number, depth: number): number =>
  Math.max(size * (depth / 4 + 1), depth * (size / 4 + 1));

const sharedBytes = ({ rows, columns, depth }: SharedBlock): number =>
  16 * (sharedQuads(rows, depth) + sharedQuads(columns, depth));

export const matrixSubgroups = (block: MatrixBlock): number =>
  (block.rows / block.subgroupRows) * (block.columns / block.subgroupColumns);
