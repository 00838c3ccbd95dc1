import type { ProgramContext, SubgroupMatrix } from "@halfstep/device";
import { isFloat8 } from "@halfstep/formats/dtypes";
import { type BlockSize, blocks, type MatrixBlock, type SharedBlock } from "./block-table.js";

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

/** Workgroups that keep a large device busy. */
const enoughBlocks = 96;

/** The size of a product's blocks, by its shape alone; undefined where blocks would be mostly empty. */
export function blockSize(m: number, n: number, k: number, slices: number): BlockSize | undefined {
  if (m < 32 || n < 32 || k < 16) return undefined;
  const large = Math.ceil(m / 128) * Math.ceil(n / 128) * slices;
  return m >= 96 && n >= 96 && large >= enoughBlocks ? "large" : "medium";
}

/** The engine for a device and the storage of the factors, which are the first two bindings. */
export function chooseEngine(
  size: BlockSize | undefined,
  { hardware, bindings, tier }: ProgramContext,
): Engine {
  if (!size || !hardware) return { kind: "rows" };
  const table = blocks(hardware.class);
  // Where a workgroup has no room for large blocks, medium ones are better than none.
  const sizes = size === "large" ? [table.large, table.medium] : [table.medium];
  // Float16 represents all 8-bit numbers exactly.
  const isHalf = bindings
    .slice(0, 2)
    .every(
      ({ dtype, rounding }) => dtype === "float16" || rounding === "float16" || isFloat8(dtype),
    );
  const lanes = hardware.matrixSubgroupSize;
  for (const { matrix: block } of sizes) {
    const matrix =
      block &&
      hardware.subgroupMatrices.find(
        ({ component, m, n, k }) =>
          (component === "f32" || (isHalf && tier === "native")) &&
          block.subgroupRows % m === 0 &&
          block.subgroupColumns % n === 0 &&
          block.depth % k === 0 &&
          fits(matrixBytes(block, { m, n, component }), lanes * matrixSubgroups(block), hardware),
      );
    if (block && matrix) return { kind: "matrix", block, matrix, lanes };
  }
  for (const { shared: block } of sizes)
    if (block && fits(sharedBytes(block), sharedInvocations(block), hardware))
      return { kind: "shared", block };
  return { kind: "rows" };
}

const fits = (
  bytes: number,
  invocations: number,
  limits: { readonly workgroupBytes: number; readonly workgroupInvocations: number },
): boolean => bytes <= limits.workgroupBytes && invocations <= limits.workgroupInvocations;

/** Elements added to each row in workgroup memory, so that neighbours of a column lie in different banks. */
export const skew = { shared: 4, matrix: 8 };

export const sharedInvocations = ({ rows, columns, perInvocation }: SharedBlock): number =>
  (rows / perInvocation) * (columns / perInvocation);
const sharedBytes = ({ rows, columns, depth }: SharedBlock): number =>
  4 * depth * (rows + columns + 2 * skew.shared);

export const matrixSubgroups = (block: MatrixBlock): number =>
  (block.rows / block.subgroupRows) * (block.columns / block.subgroupColumns);
const matrixBytes = (
  block: MatrixBlock,
  { m, n, component }: Omit<SubgroupMatrix, "k">,
): number => {
  const { rows, columns, depth } = block;
  // Either factor may be stored along k or across it.
  const along = (size: number): number =>
    Math.max(size * (depth + skew.matrix), depth * (size + skew.matrix));
  const bytes = component === "f16" ? 2 : 4;
  return bytes * (along(rows) + along(columns)) + 4 * matrixSubgroups(block) * m * n;
};
