import { blockSize, partsForBlocks } from "./block-size.js";
import type { TileShape } from "./tile.js";

/** The tiles of a product [m, n], chosen by its shape alone, so that all devices add in the same order. */
export interface TilePlan extends TileShape {
  /** Whether rows of the result consist of whole stores of `width` columns. */
  readonly isAligned: boolean;
  /** Groups of `width` columns in a row. */
  readonly columns: number;
}

export interface ProductPlan extends TilePlan {
  /** Number of parts of k; their sums are added afterwards. */
  readonly splits: number;
}

export function planTiles(m: number, n: number): TilePlan {
  const rows = m <= 8 ? 8 : m <= 16 ? 16 : 32;
  const wide = Math.ceil(n / 32) * 32;
  const narrow = Math.ceil(n / 16) * 16;
  // Narrow tiles reach four fifths of the speed of wide ones, and waste less at the edge.
  const width = n % 4 === 0 && narrow >= 0.8 * wide ? 4 : 2;
  return { rows, width, isAligned: n % width === 0, columns: Math.ceil(n / width) };
}

/** Workgroups that keep a device busy. */
const enoughTiles = 256;
/** Number of workgroups from which a second launch, with its writes and reads of the parts, costs more than dividing k saves. */
const fewTiles = 64;
/** Least depth of a part for which the second launch pays. */
const leastDepth = 512;

/** In elements: rows a multiple of this apart map to so few cache sets of a CPU that 32 of them evict each other. */
const farApart = 16_384;

/** What a product's plan depends on besides its sizes. */
interface ProductPlace {
  /** Elements between rows of the left factor; 0, the default, where it is transposed. */
  readonly stride?: number;
  /** The class of the hardware that computes it, where it is known. */
  readonly hardwareClass?: string | undefined;
}

/** The plan of `batch` products [m, k] · [k, n], which may divide k: for tiles, or for blocks where a GPU computes them. */
export function planProduct(
  m: number,
  n: number,
  k: number,
  batch = 1,
  { stride = 0, hardwareClass }: ProductPlace = {},
): ProductPlan {
  const tiling = planTiles(m, n);
  const isFar = stride > 0 && stride % farApart === 0;
  const plan: TilePlan = isFar && tiling.rows === 32 ? { ...tiling, rows: 16 } : tiling;
  const isGpu = hardwareClass !== undefined && hardwareClass !== "software";
  if (isGpu && blockSize(m, n, k, batch) !== undefined)
    return { ...plan, splits: partsForBlocks(m, n, k, batch) };
  const tiles = Math.ceil(m / plan.rows) * Math.ceil(plan.columns / 8) * batch;
  const wanted = Math.ceil(enoughTiles / Math.max(1, tiles));
  const splits = tiles >= fewTiles ? 1 : Math.max(1, Math.min(wanted, Math.floor(k / leastDepth)));
  return { ...plan, splits };
}
