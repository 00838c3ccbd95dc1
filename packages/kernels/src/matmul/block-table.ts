import { measuredBlocks } from "./measured-blocks.js";

/** Which blocks a product is cut into, of those that {@link Blocks} has. */
export type BlockSize = "large" | "medium";

/** A workgroup's part of the result, and how far along k it goes at a time. */
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

/** Where nothing was measured. */
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
 * The part of the committed table that decides how a class of devices adds up its products, as text: what a checkpoint
 * remembers, because a run that goes on with another table repeats no bits.
 */
export const kernelTable = (deviceClass: string): string => JSON.stringify(blocks(deviceClass));
