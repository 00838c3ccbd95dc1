/** The size of a product's blocks. */
export type BlockSize = "large" | "medium";

/** Workgroups that keep a large device busy. */
const enoughBlocks = 96;

/** Rows and columns of blocks, by which they are counted: a table may have others. */
const sides: Readonly<Record<BlockSize, number>> = { large: 128, medium: 64 };

const countOf = (size: BlockSize, m: number, n: number): number =>
  Math.ceil(m / sides[size]) * Math.ceil(n / sides[size]);

/** Whether most of a large block would be full. */
const fillsLarge = (m: number, n: number): boolean => m >= 96 && n >= 96;

/** The size of a product's blocks, by its shape alone; undefined where blocks would be mostly empty. */
export function blockSize(m: number, n: number, k: number, slices: number): BlockSize | undefined {
  if (m < 32 || n < 32 || k < 16) return undefined;
  return fillsLarge(m, n) && countOf("large", m, n) * slices >= enoughBlocks ? "large" : "medium";
}

/** Least depth of a part of k: a shorter part takes less time than the launch that adds the parts up. */
const leastDepth = 1024;

/** The numbers by which k is divided for GPUs. */
export const divisionForGpus: Readonly<Record<string, number>> = { enoughBlocks, leastDepth };

/**
 * Parts of k, by shape alone, that give a GPU enough blocks: large ones if their parts are deep enough, medium ones if not, and whole
 * products from that number of blocks on.
 */
export function partsForBlocks(m: number, n: number, k: number, batch: number): number {
  const deepest = Math.max(1, Math.floor(k / leastDepth));
  const wanted = (size: BlockSize): number =>
    Math.ceil(enoughBlocks / (countOf(size, m, n) * batch));
  if (fillsLarge(m, n) && wanted("large") <= deepest) return wanted("large");
  return Math.min(wanted("medium"), deepest);
}
