import { measuredBlocks } from "./measured-blocks.js";

/** The size of a product's blocks, among those of {@link Blocks}. */
export type BlockSize = "large" | "medium";

/** A workgroup's part of the result, and its depth along k in a step. */
interface Block {
  readonly rows: number;
  readonly columns: number;
  readonly depth: number;
}

export interface SharedBlock extends Block {
  /** Rows, and columns, that one invocation computes. */
  readonly perInvocation: 4 | 8;
}

export interface MatrixBlock extends Block {
  /** Rows and columns that one subgroup computes. */
  readonly subgroupRows: number;
  readonly subgroupColumns: number;
}

/** The blocks of a class of devices; without one, that engine is not used there. */
export type Blocks = Readonly<
  Record<BlockSize, { readonly shared?: SharedBlock; readonly matrix?: MatrixBlock }>
>;

/** Blocks of classes without measurements. */
const defaultBlocks: Blocks = {
  large: {
    shared: { rows: 128, columns: 128, depth: 16, perInvocation: 8 },
    matrix: { rows: 128, columns: 128, depth: 32, subgroupRows: 64, subgroupColumns: 32 },
  },
  medium: {
    shared: { rows: 64, columns: 64, depth: 16, perInvocation: 4 },
    matrix: { rows: 64, columns: 64, depth: 32, subgroupRows: 32, subgroupColumns: 32 },
  },
};

/** The committed choice for a class of devices: never measured while training, so that sums repeat. */
export const blocks = (deviceClass: string): Blocks => measuredBlocks[deviceClass] ?? defaultBlocks;

/**
 * The part of the committed table that decides how a class of devices adds up its products, as text: checkpoints store
 * it, because a run that continues with another table does not repeat the same bits.
 */
export const kernelTable = (deviceClass: string): string => JSON.stringify(blocks(deviceClass));
